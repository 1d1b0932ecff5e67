"""The policy for the user's command: what is seen at a moment, and what follows from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainprobe.ladder.pace import Pace
from trainprobe.ladder.policy import Decision, Now, RankNow, decide, ends_at, outgrown, quiet_long
from trainprobe.model.evidence import Ended

PACE = Pace(first_output_s=40, stall_s=20, run_s=60)
NEVER = float("inf")
OK = Ended("exited", code=0)
KILLED = Ended("signalled", signal=9)


def ranks(*steps: int, sign_at: float = 9.5) -> tuple[RankNow, ...]:
    return tuple(RankNow(rank, steps=count, sign_at=sign_at) for rank, count in enumerate(steps))


def at(
    moment: float,
    some: tuple[RankNow, ...],
    *,
    sign_at: float | None = None,
    looked_at: float | None = None,
    running: bool = True,
) -> Now:
    newest = max((rank.sign_at for rank in some), default=0.0) if sign_at is None else sign_at
    return Now(moment, running, some, sign_at=newest, looked_at=looked_at)


def decided(now: Now, *, largest: bool = False, hard_s: float = NEVER) -> Decision:
    return decide(now, PACE, largest=largest, hard_s=hard_s)


def test_a_small_size_passes_once_every_rank_has_stepped() -> None:
    assert decided(at(10, ranks(3, 3))) == Decision("passed", "steps_seen")
    assert decided(at(10, ranks(3, 2))).what == "go_on"
    assert decided(at(10, ranks(9, 9)), largest=True).what == "go_on"


def test_the_largest_size_passes_when_its_time_is_up_and_all_go_on() -> None:
    assert decided(at(60, ranks(9, 9, sign_at=58)), largest=True) == Decision("passed", "time_up")


def test_when_the_time_is_up_and_somebody_is_quiet_the_watch_goes_on_until_it_is_a_stall() -> None:
    quiet = (RankNow(0, steps=9, sign_at=59.9), RankNow(1, steps=9, sign_at=44))

    assert decided(at(60, quiet), largest=True).what == "go_on"
    assert decided(at(80, (replace(quiet[0], sign_at=79.9), quiet[1])), largest=True) == Decision(
        "look", "time_up", (1,)
    )


def test_the_end_of_the_whole_climb_leaves_no_time_to_wait() -> None:
    assert decided(at(30, ranks(1, 1, sign_at=12)), hard_s=30) == Decision(
        "look", "time_up", (0, 1)
    )


def test_silence_from_the_start_and_later() -> None:
    assert decided(at(39, ranks(0, 0, sign_at=0))).what == "go_on"
    assert decided(at(40, ranks(0, 0, sign_at=0))) == Decision("look", "first_output")
    assert decided(at(29, ranks(1, 1))).what == "go_on"
    assert decided(at(29.5, ranks(1, 1))) == Decision("look", "stall")


def test_the_next_look_comes_half_a_stall_time_later() -> None:
    assert decided(at(35, ranks(1, 1), looked_at=30)).what == "go_on"
    assert decided(at(40, ranks(1, 1), looked_at=30)) == Decision("look", "stall")


def test_after_a_death_the_others_get_time_for_their_last_words() -> None:
    dead = RankNow(1, ended=KILLED, ended_at=20, sign_at=20)

    assert decided(at(21, (RankNow(0, sign_at=20), dead))).what == "go_on"
    assert decided(at(21.5, (RankNow(0, sign_at=20), dead))) == Decision("look", "fault", (1,))
    assert decided(at(21.5, (replace(dead, rank=0), dead), running=False)) == Decision("ended")


def test_those_that_are_leaving_are_let_go_before_anybody_looks() -> None:
    dead, leaving = RankNow(1, ended=KILLED, ended_at=20), RankNow(0, sign_at=20.5, leaving=True)

    assert decided(at(26, (leaving, dead))).what == "go_on"
    assert decided(at(26, (leaving, dead, RankNow(2)))).why == "fault"
    assert decided(at(35, (leaving, dead))).why == "fault"


def test_a_row_of_deaths_does_not_put_the_look_off_for_ever() -> None:
    dying = tuple(RankNow(rank, ended=KILLED, ended_at=20 + rank) for rank in range(7))

    assert decided(at(26.1, (*dying, RankNow(7)))).why == "fault"


def test_a_death_by_our_own_hand_is_no_fault() -> None:
    assert not RankNow(1, ended=Ended("signalled", signal=15, by_us=True)).failed


def test_a_rank_that_left_while_the_others_wait() -> None:
    left = RankNow(1, ended=OK, ended_at=20, sign_at=20)

    assert decided(at(24, (RankNow(0, sign_at=20), left))).what == "go_on"
    assert decided(at(25, (RankNow(0, sign_at=20), left))) == Decision("look", "left", (1,))
    assert (
        decided(at(29, (RankNow(0, sign_at=28), left))).what == "go_on"
    )  # it still writes its checkpoint


def test_a_stopped_process_is_looked_at_before_any_stall() -> None:
    stopped = RankNow(1, sign_at=19, stopped_since=17)

    assert decided(at(19, (RankNow(0, sign_at=19), stopped))).what == "go_on"
    assert decided(at(20, (RankNow(0, sign_at=20), stopped))) == Decision("look", "stopped", (1,))


def test_all_gone() -> None:
    done = tuple(RankNow(rank, ended=OK, ended_at=5) for rank in range(2))

    assert decided(at(5.1, done, running=False)) == Decision("ended")
    assert decided(at(5.1, done, running=True)).what == "go_on"  # the launcher is still there


def test_the_launcher_may_fail_alone() -> None:
    now = replace(at(30, ranks(1)), launcher_failed_at=28.0)

    assert decided(now) == Decision("look", "fault")


@pytest.mark.parametrize(("sign_at", "long"), [(11.0, False), (10.0, True)])
def test_quiet_long_counts_the_quietest_living_rank(sign_at: float, long: bool) -> None:
    some = (RankNow(0, sign_at=39), RankNow(1, sign_at=sign_at), RankNow(2, ended=OK, sign_at=0))

    assert quiet_long(at(40, some), PACE) is long


def test_the_watch_has_an_end_whatever_is_seen() -> None:
    assert ends_at(PACE, NEVER) == 100
    assert ends_at(PACE, 30) == 30


def test_a_cell_that_runs_to_its_end_is_not_over_after_some_steps() -> None:
    to_the_end = replace(PACE, to_its_end=True, silent_s=50)

    assert decide(at(10, ranks(9, 9)), to_the_end, largest=False, hard_s=NEVER).what == "go_on"
    assert decide(
        at(60, ranks(9, 9, sign_at=59)), to_the_end, largest=False, hard_s=NEVER
    ) == Decision("passed", "time_up")


def test_silence_beyond_what_smaller_cells_foretell_is_outgrown() -> None:
    known = replace(PACE, to_its_end=True, silent_s=50)

    assert not outgrown(at(59, ranks(3, 3, sign_at=10)), known)
    assert outgrown(at(61, ranks(3, 3, sign_at=10)), known)
    assert not outgrown(
        at(39, ranks(0, 0, sign_at=0)), replace(known, silent_s=30)
    )  # its first sign has a deadline of its own
    assert not outgrown(at(10_000, ranks(3, 3)), PACE)
    assert not quiet_long(at(55, ranks(3, 3, sign_at=10)), known)
