"""Steps that a job prints while some of its ranks seem to hang."""

from __future__ import annotations

import pytest

from tests.unit.waits.live_rows import job, own, rank, view
from trainprobe.facts import Output
from trainprobe.model.facts import Fact

STUCK = own("wait_for_shard", 24)


def printed(text: str, silent_s: float) -> Output:
    return Output(("E9",), "job", None, tail=text, silent_s=silent_s)


def ranks(*, working: bool) -> list[Fact]:
    other = (own("step", 5), own("step", 7)) if working else (STUCK, STUCK)
    return [job(2), *rank(0, age_s=60.0), *rank(1, *other, age_s=60.0)]


@pytest.mark.parametrize(
    ("text", "silent_s", "verdict"),
    [
        ("step 300 loss 0.2", 2.0, "undetermined"),
        ("step 300 loss 0.2", 58.0, "hung"),
        ("still alive", 2.0, "hung"),
    ],
    ids=["after it had come there", "before it came there", "no step"],
)
def test_a_step_that_is_printed_after_somebody_has_come_to_wait(
    text: str, silent_s: float, verdict: str
) -> None:
    stuck = [job(3), *rank(0, age_s=60.0), *rank(1, STUCK, STUCK, age_s=60.0)]
    goes_on = rank(2, own("serve", 5), own("serve", 7))

    assert view([*stuck, *goes_on, printed(text, silent_s)]).verdict == verdict


def test_where_all_ranks_wait_nobody_of_them_has_printed_it() -> None:
    both = ranks(working=False)

    assert view([*both, printed("step 300 loss 0.2", 2.0)]).verdict == "hung"
