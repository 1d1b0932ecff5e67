"""The steps that ranks say: is one missing, does one rank hold the others up, do they take longer
than they did?
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from trainprobe.supervise.heartbeats import Heartbeats
from trainprobe.supervise.rhythm import SOONEST_S, Suspicion
from trainprobe.supervise.step_times import ENOUGH, StepTimes

# A step that takes so many times the median is missing. The look begins earlier, so that it is over
# by then: it takes some two seconds.
TIMES = 3.0
LOOK_TIMES, LOOK_TAKES_S = 2.0, 2.5
COMPARED_EVERY = 10  # steps
# A rank is told of again when it holds the others up by so much more.
WORSE = 1.5


@dataclass(frozen=True)
class Finding:
    """What the steps say: a sentence, and of which ranks."""

    says: str
    ranks: tuple[int, ...] = ()


class PaceWatch:
    """Reads the steps of all ranks; `rank_of` gives the number of a pid."""

    def __init__(self, heartbeats: Heartbeats, rank_of: Callable[[int], int | None]) -> None:
        self._beats, self._rank_of = heartbeats, rank_of
        self.times = StepTimes()
        self._busy: dict[int, tuple[float, float]] = {}
        self._told: dict[int, float] = {}
        self._drift_told = 0.0
        self._compared = 0

    def read(
        self,
        *,
        disturbed: bool = False,
        at: float = 0.0,
        busy_s: Mapping[int, float] = MappingProxyType({}),
    ) -> None:
        """Take the steps since the last reading. `disturbed`: while the job is looked at, which
        slows it, its steps say nothing of its pace. `busy_s` is how long each rank has run or
        waited for a processor until `at`.
        """
        self._beats.read()
        for pid, rank in self._beats.ranks.items():
            now = (at, busy_s[pid]) if pid in busy_s else None
            before = self._busy.get(pid)
            for beat in rank.newest:
                busy = _between(before, now, beat.at)
                self.times.add(pid, beat.step, beat.at, beat.cpu_s, busy, counts=not disturbed)
            if now is not None:
                self._busy[pid] = now

    def said_rank(self, pid: int) -> int | None:
        """The number that a rank gives itself."""
        beats = self._beats.ranks.get(pid)
        return beats.rank if beats is not None else None

    @property
    def pids(self) -> Collection[int]:
        """Who says steps."""
        return self._beats.ranks.keys()

    def forget(self, pid: int) -> None:
        self._beats.forget(pid)
        self._busy.pop(pid, None)
        self.times.forget(pid)

    @property
    def phase(self) -> str:
        """What a rank does instead of steps; "" while all train."""
        return next((rank.phase for rank in self._beats.ranks.values() if rank.phase), "")

    def suspicion(self, at: float) -> Suspicion | None:
        """A step that is missing, where steps are said."""
        last, median_s = self.times.last_at(), self.times.median_s()
        if last is None or median_s is None or self.phase:
            return None
        missing_s = TIMES * median_s
        if at - last >= max(SOONEST_S, LOOK_TIMES * median_s, missing_s - LOOK_TAKES_S):
            return Suspicion("no-step", last, may_last_s=missing_s)
        return None

    def steady(self, at: float) -> bool:
        """Do steps come as they should, so that nothing else is worth a look?"""
        said = self.times.median_s() is not None and not self.phase
        return said and self.suspicion(at) is None

    def findings(self) -> list[Finding]:
        """What is new about the pace; asked every half second, compared every ten steps."""
        count = self.times.count
        if count < ENOUGH or count == self._compared or count % COMPARED_EVERY >= 5:
            return []
        self._compared = count
        found = []
        late = self.times.straggler()
        if late is not None and late.share > WORSE * self._told.get(late.rank, 0.0):
            self._told[late.rank] = late.share
            rank = self._rank_of(late.rank)
            who = f"Rank {rank}" if rank is not None else f"Process {late.rank}"
            found.append(
                Finding(
                    f"{who} holds the others up: it works for {_s(late.late_s)} longer in each step"
                    f" of {_s(late.step_s)} ({late.share:.0%}), since step {late.since}.",
                    (rank,) if rank is not None else (),
                )
            )
        slower = self.times.drift()
        if slower is not None and slower.now_s > WORSE * max(self._drift_told, 1e-9):
            self._drift_told = slower.now_s
            found.append(
                Finding(
                    f"Steps take {_s(slower.now_s)} where they took {_s(slower.before_s)}, since"
                    f" step {slower.since}."
                )
            )
        return found


def _between(
    before: tuple[float, float] | None, now: tuple[float, float] | None, at: float
) -> float | None:
    """What had been reached at `at`, between two readings; None where there are none."""
    if before is None or now is None or now[0] <= before[0]:
        return None
    return before[1] + (now[1] - before[1]) * (at - before[0]) / (now[0] - before[0])


def _s(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
