"""Start-up that will take longer than the ranks wait for each other: a longer timeout, or data
that is prepared in another way.
"""

from __future__ import annotations

import pytest

from tests.unit.waits.test_foreseen import Row, facts, grown, judged, only
from trainprobe.model.diagnosis import Diagnosis

SIZES = (1000, 2000, 4000, 8000)


def fixes(done: Diagnosis) -> str:
    return " ".join(
        step for cause in done.causes if cause.named for fix in cause.fixes for step in fix.steps
    )


def started(rows: list[Row], planned: int) -> Diagnosis:
    return judged(facts(*rows, planned={"rows": planned}, backend="nccl"))


def test_a_square_in_the_command_s_own_start_is_scaling_whatever_the_timeout() -> None:
    done = started(
        grown(
            "first_step_s",
            lambda n: 0.5 + 1e-6 * n * n,
            "s",
            probe="user_script",
            ranks=2,
            rows=SIZES,
            noise=0.05,
        ),
        300_000,
    )
    assert (done.verdict, done.causes[0].id, done.causes[0].named) == (
        "at-risk",
        "dataset-scaling",
        True,
    )
    assert "timedelta" not in fixes(done)
    assert "for each row over all rows" in done.causes[0].fixes[0].title


@pytest.mark.parametrize(
    ("planned", "cause"), [(3_000_000, "timeout-too-short"), (60_000_000, "dataset-scaling")]
)
def test_growth_in_step_wants_a_timeout_as_long_as_that_is_one(planned: int, cause: str) -> None:
    rows = grown(
        "first_step_s",
        lambda n: 1 + 1e-3 * n,
        "s",
        probe="user_script",
        ranks=2,
        rows=(1000, 10_000, 100_000, 1_000_000),
    )
    done = started(rows, planned)
    assert only(done.predictions, "start-up").steep is False
    assert (done.causes[0].id, done.causes[0].named) == (cause, True)
    assert ("init_process_group(..., timeout=timedelta(" in fixes(done)) is (
        cause == "timeout-too-short"
    )
    if cause == "dataset-scaling":
        assert "power" not in done.causes[0].summary, (
            "it grows in step, and the report does not claim more"
        )


def test_a_law_that_is_left_open_with_days_ahead_is_no_matter_of_the_timeout() -> None:
    rows = grown(
        "first_step_s",
        lambda n: 4.0 + 5e-7 * n * n,
        "s",
        probe="user_script",
        ranks=2,
        rows=(2, 1000, 2000, 4000),
        noise=0.05,
    )
    done = started(rows, 1_000_000)
    assert (done.verdict, done.causes[0].id, done.causes[0].named) == (
        "at-risk",
        "dataset-scaling",
        True,
    )
    assert "init_process_group(..., timeout" not in fixes(done)
