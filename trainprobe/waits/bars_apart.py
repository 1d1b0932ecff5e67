"""Bars of several ranks that tell of different plans."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from trainprobe.facts import LogWork

NEAR_END = 0.995
NEAR = 0.05  # of the longest; bars further apart are of different work
BESIDE_S = 5.0
_NUMBERS = re.compile(r"[\d ]{1,40}")


def bars_of_other_lengths(works: Iterable[LogWork]) -> tuple[LogWork, ...]:
    """Return bars of one name and one clock, but of different lengths, of which one is nearly full
    and not all are: ranks with different numbers of batches, at the end of the shortest. Empty
    where there are none.
    """
    by_name: dict[str, list[LogWork]] = defaultdict(list)
    for work in works:
        if work.is_bar and work.of and work.step and work.kind not in ("data", "load"):
            name = work.line.split("%", 1)[0] if "%" in work.line else ""
            by_name[_NUMBERS.sub(" ", name)].append(work)
    for bars in by_name.values():
        last = max(bars, key=lambda bar: bar.place)
        beside = [
            bar
            for bar in bars
            if abs((bar.ran_s or 0) - (last.ran_s or 0)) <= BESIDE_S
            and abs((bar.of or 0) - (last.of or 0)) <= NEAR * (last.of or 0)
        ]
        if (
            len({bar.of for bar in beside}) > 1
            and any((bar.step or 0) >= NEAR_END * (bar.of or 0) for bar in beside)
            and not all(bar.ended for bar in beside)
        ):
            return tuple(sorted(beside, key=lambda bar: bar.of or 0))
    return ()
