"""What looks mean: alarms as rare as those of attach, and looks that grow rarer."""

from __future__ import annotations

import math

from trainprobe.supervise.rhythm import Suspicion
from trainprobe.supervise.suspicions import (
    ALLOWED_S,
    OUTLASTED_S,
    UNSEEN_S,
    WORKS_S,
    Answer,
    Suspicions,
)

PAUSE = Suspicion("all-quiet", 100.0)


def test_one_conclusive_hang_is_an_alarm_and_is_told_once() -> None:
    decides = Suspicions()
    assert decides.due(PAUSE, 104.0)
    assert decides.answered("hung", 110.0, conclusive=True, cpu_s=1.0) == "hung"
    assert not decides.due(PAUSE, 1000.0)
    assert decides.alarmed


def test_a_hang_that_is_not_sure_is_looked_at_again_at_once() -> None:
    decides = Suspicions()
    decides.due(PAUSE, 104.0)
    assert decides.answered("hung", 110.0, conclusive=False, cpu_s=1.0) == "again"
    assert decides.due(PAUSE, 111.0)
    assert decides.answered("hung", 115.0, conclusive=False, cpu_s=1.0) == "hung"


def test_a_policy_that_ends_the_job_wants_two_hangs_in_a_row() -> None:
    decides = Suspicions(sure=True)
    decides.due(PAUSE, 104.0)
    assert decides.answered("hung", 110.0, conclusive=True, cpu_s=1.0) == "again"
    assert decides.answered("healthy", 115.0, conclusive=True, cpu_s=1.0) == "patience"
    assert decides.answered("hung", 130.0, conclusive=True, cpu_s=1.0) == "again"
    assert decides.answered("hung", 135.0, conclusive=True, cpu_s=1.0) == "hung"


def hung(
    decides: Suspicions,
    at: float,
    *,
    may_end: bool = True,
    open_s: float = math.inf,
    own_waits: tuple[int, ...] = (),
) -> Answer:
    quiet = {1: 100.0, 2: 101.0}
    return decides.answered(
        *("hung", at),
        conclusive=True,
        cpu_s=1.0,
        open_s=open_s if may_end else None,
        own_waits=own_waits,
        quiet=quiet,
    )


def test_a_wait_that_may_end_is_told_when_it_is_old_enough_without_another_look() -> None:
    decides = Suspicions()
    decides.due(PAUSE, 103.5)
    assert hung(decides, 106.0) == "held"
    assert not decides.due(PAUSE, 108.0)
    assert not decides.outlasted(108.0, {1: 100.0, 2: 101.0})
    assert decides.outlasted(100.0 + OUTLASTED_S, {1: 100.0, 2: 101.0, 3: 108.0})
    assert decides.alarmed
    assert not decides.outlasted(120.0, {1: 100.0, 2: 101.0}), "once"


def test_a_wait_that_began_late_in_a_pause_is_told_by_its_own_age() -> None:
    """The pause of a slow start went over into another one, in which a rank reads for seconds."""
    decides = Suspicions()
    decides.due(PAUSE, 103.5)
    assert hung(decides, 117.0, open_s=3.0) == "held"
    quiet = {1: 100.0, 2: 101.0}
    assert not decides.outlasted(122.0, quiet)
    assert decides.outlasted(123.1, quiet)


def test_a_wait_that_may_end_is_no_hang_before_the_step_is_missing() -> None:
    for may_last_s in (12.0, WORKS_S + 10.0):
        decides = Suspicions()
        decides.due(Suspicion("no-step", 100.0, may_last_s=may_last_s), 97.5 + may_last_s)
        assert hung(decides, 99.5 + may_last_s) == "held"
        assert not decides.outlasted(99.9 + may_last_s, {1: 100.0, 2: 101.0})
        assert decides.outlasted(100.0 + may_last_s, {1: 100.0, 2: 101.0})


def test_ranks_that_wait_for_each_other_are_told_at_once_also_in_a_long_step() -> None:
    decides = Suspicions()
    decides.due(Suspicion("no-step", 100.0, may_last_s=60.0), 157.5)
    assert hung(decides, 159.0, may_end=False) == "hung"


def test_a_rank_that_moves_meanwhile_makes_it_no_hang() -> None:
    for quiet in ({1: 100.0}, {1: 100.0, 2: 107.0}):
        decides = Suspicions()
        decides.due(PAUSE, 103.5)
        assert hung(decides, 106.0) == "held"
        assert not decides.outlasted(108.0, quiet)
        assert not decides.outlasted(120.0, quiet)
        assert decides.due(PAUSE, 108.0), "that is worth another look"
        assert not decides.alarmed


def test_a_rank_that_polls_may_seem_to_work_while_the_others_wait() -> None:
    decides = Suspicions()
    decides.due(PAUSE, 103.5)
    assert hung(decides, 106.0, own_waits=(2,)) == "held"
    assert not decides.outlasted(107.0, {1: 100.0})
    assert not decides.outlasted(109.5, {1: 100.0})
    assert decides.outlasted(110.0, {1: 100.0, 2: 109.5})


def test_a_rank_that_works_in_the_end_makes_it_no_hang() -> None:
    decides = Suspicions()
    decides.due(PAUSE, 103.5)
    assert hung(decides, 106.0, own_waits=(2,)) == "held"
    for at in (107.0, 109.0, 110.5, 100.0 + WORKS_S):
        assert not decides.outlasted(at, {1: 100.0})
    assert decides.due(PAUSE, 100.0 + WORKS_S)
    assert not decides.alarmed


def test_a_pause_that_was_over_before_the_look_is_no_hang() -> None:
    decides = Suspicions()
    decides.due(PAUSE, 103.5)
    assert decides.answered("hung", 125.0, conclusive=True, cpu_s=1.0, over=True) == "patience"
    assert not decides.alarmed
    assert decides.due(Suspicion("all-quiet", 121.5), 125.0)


def test_what_cannot_end_or_has_lasted_is_told_at_once() -> None:
    for at, may_end in ((106.0, False), (100.0 + OUTLASTED_S, True)):
        decides = Suspicions()
        decides.due(PAUSE, 103.5)
        assert hung(decides, at, may_end=may_end) == "hung"


def test_looks_that_find_nothing_grow_rarer() -> None:
    decides = Suspicions()
    looks, at = [], 103.5
    while at < 100.0 + 600.0:
        if decides.due(PAUSE, at):
            looks.append(at)
            assert decides.answered("healthy", at + 2, conclusive=True, cpu_s=1.0) == "patience"
        at += 0.5
    assert 6 <= len(looks) <= 12
    assert not decides.alarmed


def test_ranks_that_all_wait_and_not_for_long_are_looked_at_again_soon() -> None:
    decides = Suspicions()
    decides.due(PAUSE, 104.0)
    decides.answered("healthy", 106.0, conclusive=True, cpu_s=1.0, works=False)
    assert decides.due(PAUSE, 108.5)


def test_a_rank_that_works_alone_is_no_straggler_until_it_has_done_so_for_long() -> None:
    decides = Suspicions()
    decides.due(PAUSE, 104.0)
    assert decides.answered("slow", 160.0, conclusive=True, cpu_s=1.0) == "patience"
    assert decides.due(PAUSE, 800.0)
    assert decides.answered("slow", 802.0, conclusive=True, cpu_s=1.0) == "slow"


def test_a_new_pause_is_looked_at_as_the_first_was() -> None:
    decides = Suspicions()
    decides.due(PAUSE, 104.0)
    decides.answered("healthy", 106.0, conclusive=True, cpu_s=1.0)
    assert not decides.due(PAUSE, 107.0)
    assert decides.due(Suspicion("all-quiet", 200.0), 204.0)


def test_looks_have_a_price_and_a_budget() -> None:
    decides = Suspicions()
    decides.due(PAUSE, 104.0)
    decides.answered("healthy", 106.0, conclusive=True, cpu_s=ALLOWED_S + 1)
    later = Suspicion("all-quiet", 200.0)
    assert not decides.due(later, 204.0)
    assert decides.due(later, 212.5)
    much = Suspicion("all-quiet", 300.0)
    assert decides.due(much, 304.0, job_cpu_s=1e6), "a long job pays for them"


def test_what_cannot_be_seen_is_told_after_a_minute() -> None:
    decides = Suspicions()
    at = 104.0
    decides.due(PAUSE, at)
    while decides.answered("undetermined", at, conclusive=False, cpu_s=0.1) == "patience":
        assert not decides.alarmed
        while not decides.due(PAUSE, at):
            at += 0.5
    assert decides.alarmed
    assert UNSEEN_S <= at - PAUSE.since < 3 * UNSEEN_S


def test_no_pause_no_look() -> None:
    assert not Suspicions().due(None, 104.0)
