"""What the steps of a job say of its pace: how long they take, who works longer than the others,
and since when. Pure.

Ranks that train together end their steps together, however unequal they are: the time of a step
tells nobody apart. Their processor time does. The one that works while the others wait holds them
up, and by how much is the difference. On a crowded machine most of a step is waiting for a
processor: there the time that a rank ran or waited for one tells the same.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

KEPT = 512
WARM_UP = 5  # steps that compile, allocate and fill caches
LAST = 40  # steps that count as now
ENOUGH = 30
# Less of a step than this is noise of the machine.
LATE_SHARE = 0.1
LEAST_WORK = 0.3
CERTAIN_SHARE = 0.7  # of the single steps must say the same
SLOWER = 1.3
# Step, how long it took, and for how long the rank worked in it: by processor time, and with the
# time for which it waited for a processor.
_Row: TypeAlias = "tuple[int, float, tuple[float, float]]"
CPU, BUSY = 0, 1


@dataclass(frozen=True)
class Straggler:
    """A rank (key) that works for `late_s` longer in each step of `step_s` than the others, which
    wait for it; since step `since`.
    """

    rank: int
    late_s: float
    step_s: float
    since: int

    @property
    def share(self) -> float:
        """How much of each step the others wait for it."""
        return self.late_s / self.step_s if self.step_s else 0.0


@dataclass(frozen=True)
class Drift:
    """Steps take `now_s` where they took `before_s`, since step `since`."""

    before_s: float
    now_s: float
    since: int


class StepTimes:
    """The newest steps of each rank."""

    def __init__(self) -> None:
        self._steps: dict[int, deque[_Row]] = {}
        self._last: dict[int, tuple[float, float, float]] = {}
        self._count: dict[int, int] = {}
        self._usual_s: float | None = None
        self.newest: dict[int, int] = {}

    def add(
        self,
        rank: int,
        step: int,
        at: float,
        cpu_s: float,
        busy_s: float | None = None,
        *,
        counts: bool = True,
    ) -> None:
        """A rank ended a step at `at`; `cpu_s` is its thread's processor time until then, `busy_s`
        that with the time for which it waited for a processor. One that does not count shows only
        that the rank goes on.
        """
        before, busy_s = self._last.get(rank), cpu_s if busy_s is None else busy_s
        self._last[rank], self.newest[rank] = (at, cpu_s, busy_s), step
        self._count[rank] = self._count.get(rank, 0) + 1
        if before is None or self._count[rank] <= WARM_UP or not counts:
            return
        rows = self._steps.setdefault(rank, deque(maxlen=KEPT))
        worked = (max(0.0, cpu_s - before[1]), max(0.0, busy_s - before[2]))
        rows.append((step, at - before[0], worked))

    def forget(self, rank: int) -> None:
        for known in (self._steps, self._last, self._count, self.newest):
            known.pop(rank, None)

    @property
    def count(self) -> int:
        """How many steps all ranks have ended by now, those of the warm-up left out."""
        return min((len(rows) for rows in self._steps.values()), default=0)

    @property
    def ended(self) -> int:
        """How many steps all ranks have ended since the warm-up, disturbed ones too."""
        return max(0, min(self._count.values(), default=0) - WARM_UP)

    def median_s(self) -> float | None:
        """The median of the newest steps of all ranks; None before there are some."""
        times = [took for rows in self._steps.values() for _, took, _ in list(rows)[-LAST:]]
        return statistics.median(times) if times else None

    def last_at(self) -> float | None:
        """When the rank that is furthest behind ended its last step."""
        return min((at for at, *_ in self._last.values()), default=None)

    def straggler(self) -> Straggler | None:
        """The rank that all others wait for, if there is one."""
        rows = {rank: list(rows)[-LAST:] for rank, rows in self._steps.items()}
        if len(rows) < 2 or min(len(one) for one in rows.values()) < ENOUGH:
            return None
        return self._longer(rows, CPU) or self._longer(rows, BUSY)

    def _longer(self, rows: Mapping[int, Sequence[_Row]], by: int) -> Straggler | None:
        """The one that works longest by this measure, if that is by enough and most of the time."""
        works = {rank: statistics.median(one[2][by] for one in each) for rank, each in rows.items()}
        slowest = max(works, key=lambda rank: works[rank])
        others = statistics.median(value for rank, value in works.items() if rank != slowest)
        step_s = statistics.median(one[1] for each in rows.values() for one in each)
        late_s = works[slowest] - others
        # who hardly works at all waits for something itself
        if late_s < LATE_SHARE * step_s or works[slowest] < LEAST_WORK * step_s:
            return None
        if _share_late(rows, slowest, late_s / 2, by) < CERTAIN_SHARE:
            return None
        return Straggler(slowest, late_s, step_s, self._since(slowest, late_s / 2, by))

    def drift(self) -> Drift | None:
        """Whether steps take longer than they did, all of the newest ones."""
        rows = max(self._steps.values(), key=len, default=None)
        if rows is None or len(rows) < 2 * LAST:
            return None
        times = [took for _, took, _ in rows]
        if self._usual_s is None:
            self._usual_s = statistics.median(times[: -LAST or None])
        now = times[-LAST:]
        if statistics.median(now) < SLOWER * self._usual_s:
            return None
        now_s = statistics.median(now)
        since = _change(took - (self._usual_s + now_s) / 2 for took in times)
        return Drift(self._usual_s, now_s, list(rows)[since][0])

    def _since(self, slowest: int, late_s: float, by: int) -> int:
        """The step from which on it was late."""
        rows = {rank: list(each) for rank, each in self._steps.items()}
        late = _late(rows, slowest, by)
        return rows[slowest][_change(one - late_s for one in late) - len(late)][0]


def _change(differences: Iterable[float]) -> int:
    """The place from which on the differences are positive rather than negative: behind the least
    of their sums.
    """
    place, total, least, since = 0, 0.0, 0.0, 0
    for place, difference in enumerate(differences, 1):
        total += difference
        if total < least:
            least, since = total, place
    return min(since, max(0, place - 1))


def _late(rows: Mapping[int, Sequence[_Row]], slowest: int, by: int) -> list[float]:
    """For how much longer it worked than the others, for each of the newest steps of all."""
    others = [each for rank, each in rows.items() if rank != slowest]
    length = min(len(each) for each in rows.values())
    return [
        rows[slowest][-place][2][by] - statistics.median(each[-place][2][by] for each in others)
        for place in range(length, 0, -1)
    ]


def _share_late(rows: Mapping[int, Sequence[_Row]], slowest: int, late_s: float, by: int) -> float:
    """In which share of the steps it worked longer than the others by so much."""
    late = _late(rows, slowest, by)
    return sum(one > late_s for one in late) / len(late)
