"""When does a job behave unlike itself? Pure: it is told what each rank did in each half second.

A rank works in such a window where its main thread runs, or its files move. Ranks of a training job
work at least once a step; how long each is quiet at other times is learnt from the job itself. A
rank that is quiet for longer is a suspicion and no more: it says that a look is worth its price.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# A look finds no wait to be a hang that is younger than five seconds, and takes a second to begin.
SOONEST_S = 3.5
# However long the pauses of a job are: a look at each of them costs less than a night.
LATEST_S = 120.0
SILENT_S = 10.0  # for a job whose ranks all seem to work and print nothing
LEAST_LINES = 6  # before a job counts as one that prints
# What happens more often than this within the time below is usual. A checkpoint every half an hour
# is not, and is looked at; one every five minutes is.
USUAL_TIMES = 3
REMEMBERED_S = 1800.0
MOST_GAPS = 64
SHORT_S = 1.0  # gaps of less are nothing to learn from
TOGETHER_S = 1.5  # gaps of several ranks that end so close together are one, ...
# ... and those of which so much lies within the same: ranks that wait for each other as they start.
WITHIN_SHARE = 0.25

Kind = Literal["all-quiet", "some-quiet", "silent", "no-step"]


@dataclass(frozen=True)
class Suspicion:
    """What is unusual, since when (monotonic seconds), and of which ranks (keys). What may end by
    itself is no hang before it has lasted for `may_last_s`.
    """

    kind: Kind
    since: float
    ranks: tuple[int, ...] = ()
    may_last_s: float = 0.0


class Gaps:
    """How long something usually pauses."""

    def __init__(self, least_s: float = SHORT_S) -> None:
        self._least_s = least_s
        self._ended: list[tuple[float, float]] = []
        self._first_ended = -math.inf  # of those that are one, the last entry

    def add(self, length_s: float, at: float) -> None:
        """A pause of `length_s` has ended."""
        if length_s < self._least_s:
            return
        within_s = self._first_ended - (at - length_s)
        together = self._ended and at - self._ended[-1][0] < min(TOGETHER_S, length_s)
        if together or within_s > WITHIN_SHARE * length_s:
            self._ended[-1] = (at, max(length_s, self._ended[-1][1]))
            return
        self._first_ended = at
        self._ended.append((at, length_s))
        del self._ended[:-MOST_GAPS]

    def usual_s(self, at: float) -> float:
        """A length that has been reached USUAL_TIMES lately; 0 where none has."""
        lengths = sorted(length for ended, length in self._ended if at - ended < REMEMBERED_S)
        return lengths[-USUAL_TIMES] if len(lengths) >= USUAL_TIMES else 0.0

    def __len__(self) -> int:
        return len(self._ended)


def limit_s(usual_s: float, soonest_s: float = SOONEST_S) -> float:
    """For how long a pause raises no suspicion where `usual_s` is usual."""
    return min(LATEST_S, max(soonest_s, 1.5 * usual_s + 0.5))


class Rhythm:
    """The pauses of a job. Ranks are told apart by any number, as their pids."""

    def __init__(self) -> None:
        self._quiet_since: dict[int, float] = {}
        self._all_since: float | None = None
        self._rank_gaps, self._job_gaps, self._line_gaps = Gaps(), Gaps(), Gaps(0.0)
        self._output, self._output_since = -1, math.inf
        self._last = 0.0

    def note(self, at: float, works: Mapping[int, bool], output: int) -> None:
        """What the ranks did until `at`, since the last note; `output` counts bytes written."""
        before = self._last or at
        for rank in set(self._quiet_since) - set(works):
            del self._quiet_since[rank]
        for rank, working in works.items():
            if not working:
                self._quiet_since.setdefault(rank, before)
            elif rank in self._quiet_since:
                self._rank_gaps.add(at - self._quiet_since.pop(rank), at)
        if works and not any(works.values()):
            self._all_since = self._all_since if self._all_since is not None else before
        elif self._all_since is not None:
            self._job_gaps.add(at - self._all_since, at)
            self._all_since = None
        if output != self._output:
            if self._output >= 0 and self._output_since < at:
                self._line_gaps.add(at - self._output_since, at)
            self._output, self._output_since = output, at
        self._last = at

    def forget_pause(self, at: float) -> None:
        """We did not run ourselves until `at`, as on a laptop that slept: nothing of it counts."""
        self._quiet_since.clear()
        self._all_since, self._last, self._output_since = None, at, at

    def suspicion(self, at: float) -> Suspicion | None:
        """The strongest one that there is at `at`."""
        quiet = tuple(sorted(self._quiet_since))
        # of the rank that is quiet for longest: one that polls may seem to work now and then
        longest = min(self._quiet_since.values(), default=math.inf)
        if at - longest >= limit_s(self._rank_gaps.usual_s(at)):
            kind: Kind = "some-quiet" if self._all_since is None else "all-quiet"
            return Suspicion(kind, longest, quiet)
        if self._all_since is not None and at - self._all_since >= limit_s(
            self._job_gaps.usual_s(at)
        ):
            return Suspicion("all-quiet", self._all_since, quiet)
        if len(self._line_gaps) >= LEAST_LINES and at - self._output_since >= limit_s(
            self._line_gaps.usual_s(at), SILENT_S
        ):
            return Suspicion("silent", self._output_since)
        return None

    @property
    def quiet(self) -> Mapping[int, float]:
        """The ranks that did not work at the last note, and since when."""
        return dict(self._quiet_since)

    def works(self) -> bool:
        """Did every rank work at the last note?"""
        return not self._quiet_since
