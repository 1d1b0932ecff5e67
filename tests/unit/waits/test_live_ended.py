"""Ranks that end while they are looked at: what was seen of them is not what is."""

from __future__ import annotations

import pytest

from tests.unit.waits.live_rows import CELL, job, own, process, rank, site, view
from trainprobe.facts import RankEnding
from trainprobe.facts.ending_joins import join_endings
from trainprobe.model.facts import Fact

STEPS = (own("step", 31), own("step", 32))


def ended(
    number: int | None,
    at: float = 0.0,
    *,
    code: int | None = 0,
    signal: int | None = None,
    role: str = "rank",
) -> RankEnding:
    how = "exited" if signal is None else "signalled"
    pid = 9 if number is None else 100 + number
    moment = 1000.0 + at
    return RankEnding(
        (f"D{pid}",),
        CELL,
        number,
        role=role,
        pid=pid,
        how=how,
        code=code if signal is None else None,
        signal=signal,
        at=moment,
        failed_at=moment,
    )


def endings(*rows: RankEnding) -> list[Fact]:
    return join_endings(list(rows))


def test_a_job_that_died_meanwhile_has_crashed_because_of_the_first() -> None:
    found = view(
        job(2),
        rank(0, *STEPS),
        rank(1, *STEPS),
        endings(
            ended(1, 0.0, code=1), ended(0, 0.4, code=1), ended(None, 0.6, code=1, role="launcher")
        ),
    )

    assert (found.verdict, found.conclusive) == ("crashed", True)
    assert (found.groups[0].ranks, found.groups[0].victims) == ((1,), (0,))
    assert "rank 1 ended with exit code 1, before any other" in found.says
    assert found.next_look.startswith("trainprobe explain <LOG>")


def test_who_left_first_is_the_one_that_the_others_missed() -> None:
    found = view(
        job(2), rank(0, *STEPS), rank(1, *STEPS), endings(ended(1, 0.0), ended(0, 0.4, code=1))
    )

    assert (found.verdict, found.groups[0].how, found.groups[0].ranks) == ("crashed", "left", (1,))


def test_a_launcher_ends_the_others_within_the_same_moment() -> None:
    rows = endings(
        ended(0, 0.0, signal=15),
        ended(1, 0.001, signal=9),
        ended(None, 0.2, code=1, role="launcher"),
    )

    found = view(job(2), rank(0, *STEPS), rank(1, *STEPS), rows)

    assert (found.verdict, found.groups[0].ranks) == ("crashed", (1,))


@pytest.mark.parametrize(
    ("code", "how"), [(0, "every rank with exit code 0"), (None, "how could not be seen")]
)
def test_an_end_that_may_be_a_good_one_is_never_healthy(code: int | None, how: str) -> None:
    found = view(
        job(2), rank(0, *STEPS), rank(1, *STEPS), endings(ended(0, code=code), ended(1, code=code))
    )

    assert (found.verdict, found.conclusive, found.groups) == ("undetermined", False, ())
    assert how in found.says


def test_who_waits_for_a_dead_rank_waits_for_ever_however_short_the_time() -> None:
    found = view(job(2), rank(0, age_s=2.0), rank(1, *STEPS), endings(ended(1, signal=9)))

    assert (found.verdict, found.groups[0].ranks, found.groups[0].how) == ("hung", (1,), "left")


@pytest.mark.parametrize(
    "other", [rank(0, *STEPS), rank(0, age_s=2.0)], ids=["goes on", "has waited for two seconds"]
)
def test_a_rank_that_left_while_the_others_go_on_is_not_healthy(other: list[Fact]) -> None:
    found = view(job(2), other, rank(1, *STEPS), endings(ended(1)))

    assert (found.verdict, found.conclusive) == ("undetermined", False)
    assert "rank 1 ended" in found.says


def test_a_rank_that_was_started_again_is_judged_by_its_new_process() -> None:
    again = process(201, *STEPS, rank=1)

    found = view(
        job(2),
        rank(0, *STEPS),
        rank(1, own("wait", 9), own("wait", 9)),
        again,
        site(9, "time.sleep(99)"),
        endings(ended(1, signal=9)),
    )

    assert (found.verdict, found.ranks[1].pid) == ("healthy", 201)
