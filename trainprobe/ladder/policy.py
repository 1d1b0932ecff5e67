"""When to look at the user's command, and when to end its cell. Pure: from the state of the cell to
the next action.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trainprobe.ladder.outcome import failed
from trainprobe.ladder.pace import Pace
from trainprobe.model.evidence import Ended

What = Literal["go_on", "ended", "passed", "look"]
Why = Literal[
    "", "steps_seen", "time_up", "first_output", "stall", "stopped", "fault", "left", "outgrown"
]
STEPS_ENOUGH = 3


@dataclass(frozen=True)
class RankNow:
    """One rank at one moment; times in seconds since the cell began.

    `steps` counts optimizer steps or printed step numbers, whichever is more. `sign_at` is when it
    last showed progress or output.
    `stopped_since` is when it was first seen in state T, None when it is not. `leaving`: its main
    thread has raised or called exit.
    """

    rank: int
    ended: Ended | None = None
    ended_at: float = 0.0
    steps: int = 0
    sign_at: float = 0.0
    stopped_since: float | None = None
    leaving: bool = False

    @property
    def failed(self) -> bool:
        return failed(self.ended)


@dataclass(frozen=True)
class Now:
    """The whole cell at one moment. `sign_at` is the last sign of anybody, 0 when there was none
    yet; `looked_at` the last look.
    """

    at: float
    running: bool
    ranks: Sequence[RankNow]
    sign_at: float = 0.0
    looked_at: float | None = None
    launcher_failed_at: float | None = None


@dataclass(frozen=True)
class Decision:
    what: What
    why: Why = ""
    ranks: tuple[int, ...] = ()


GO_ON = Decision("go_on")


def decide(now: Now, pace: Pace, *, largest: bool, hard_s: float) -> Decision:
    """Say what to do. `largest` is true for the cell with all ranks; `hard_s` is when the whole
    climb's time is up.
    """
    alive = [rank for rank in now.ranks if rank.ended is None]
    if not now.running and not alive:
        return Decision("ended")
    stopped = tuple(
        rank.rank
        for rank in alive
        if rank.stopped_since is not None and now.at - rank.stopped_since >= pace.stopped_s
    )
    if stopped:
        return Decision("look", "stopped", stopped)
    faulty = [rank for rank in now.ranks if rank.failed]
    fault_times = [rank.ended_at for rank in faulty]
    if now.launcher_failed_at is not None:
        fault_times.append(now.launcher_failed_at)
    first_fault = min(fault_times, default=None)
    if first_fault is not None:
        last_fault = max([rank.ended_at for rank in faulty], default=first_fault)
        # The others get time to fail by themselves: their own messages say more than our looks.
        if all(rank.leaving for rank in alive) and alive and now.at - last_fault < pace.leave_s:
            return GO_ON
        if now.at - last_fault >= pace.echo_s or now.at - first_fault >= 4 * pace.echo_s:
            return Decision("look", "fault", tuple(rank.rank for rank in faulty))
        return GO_ON
    left = [rank for rank in now.ranks if rank.ended is not None]
    if left and alive:
        since = max(rank.ended_at for rank in left)
        quiet_since = max([since, *(rank.sign_at for rank in alive), now.looked_at or 0.0])
        if now.at - quiet_since >= pace.left_s or now.at >= hard_s:
            return Decision("look", "left", tuple(rank.rank for rank in left))
        return GO_ON
    if (
        now.ranks
        and all(rank.steps >= STEPS_ENOUGH for rank in now.ranks)
        and not largest
        and not pace.to_its_end
    ):
        return Decision("passed", "steps_seen")
    return _by_the_clock(now, pace, hard_s)


def _by_the_clock(now: Now, pace: Pace, hard_s: float) -> Decision:
    quiet_s = now.at - now.sign_at
    may_look = now.looked_at is None or now.at - now.looked_at >= pace.stall_s / 2
    if now.at >= min(pace.run_s, hard_s):
        behind = tuple(rank.rank for rank in now.ranks if now.at - rank.sign_at > _lately_s(pace))
        if now.sign_at and not behind:
            return Decision("passed", "time_up")
        # A quiet rank has stalled only after stall_s: watch on until then if there is time.
        if now.at >= hard_s or (
            may_look and (quiet_s >= pace.stall_s or now.at >= pace.run_s + pace.stall_s)
        ):
            return Decision("look", "time_up", behind)
        return GO_ON
    if may_look and not now.sign_at and now.at >= pace.first_output_s:
        return Decision("look", "first_output")
    if may_look and now.sign_at and quiet_s >= pace.stall_s:
        return Decision("look", "stall")
    return GO_ON


def quiet_long(now: Now, pace: Pace) -> bool:
    """True when some living rank has shown no sign for one and a half times the stall time: far
    more than a slow step takes.

    Where the rhythm of smaller cells is known, that time says what a cell of this size may need.
    """
    alive = [rank for rank in now.ranks if rank.ended is None]
    known_s = 0.0 if pace.silent_s == float("inf") else pace.silent_s
    long_s = max(1.5 * pace.stall_s, known_s)
    return bool(alive) and now.at - min(rank.sign_at for rank in alive) >= long_s


def outgrown(now: Now, pace: Pace) -> bool:
    """True when nobody has shown a sign for longer than a cell of this size may need, by what
    smaller ones took.
    """
    return now.at - now.sign_at >= max(pace.silent_s, 0.0 if now.sign_at else pace.first_output_s)


def ends_at(pace: Pace, hard_s: float) -> float:
    """When the watch of a cell ends, whatever is seen."""
    return min(pace.run_s + 2 * pace.stall_s, hard_s)


def _lately_s(pace: Pace) -> float:
    return min(5.0, pace.stall_s / 2)
