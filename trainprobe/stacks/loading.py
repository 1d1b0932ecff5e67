"""Is a rank short of input, step after step, or has it met a pause of its loader? Both the code
that decides whether to sample on and the code that judges ask here.

Workers that start anew at an epoch, or before a validation, make a healthy rank wait for seconds.
So the longest waits prove nothing: what is left without them must still be most of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trainprobe.stacks.frames import Frame
from trainprobe.stacks.spells import Spells, share

LOADER = ("torch/utils/data/dataloader.py", "torch/utils/data/_utils/fetch.py")
PAUSES = 2
"""In the seconds of a look: one at the end of an epoch, and one before its validation."""
MOST = 0.6
"""Of the time, from which on loading is what a step mostly waits for."""
HALF = 0.5
"""Of the time outside of torch, from which on it is worth a longer look."""


def loads(frames: Sequence[Frame]) -> bool:
    """Does a thread that stands here wait for its data loader, or fetch a batch itself?"""
    return any(part in frame.file for frame in frames for part in LOADER)


def step_share(spells: Spells) -> float:
    """The share of the time that a rank waits for input, without its longest waits; 0 where nothing
    is left then.
    """
    waits: list[float] = []
    all_s, waited_before = 0.0, False
    for start, end, waits_now in spells:
        all_s += end - start
        if waits_now:
            if not waited_before:
                waits.append(0.0)
            waits[-1] += end - start
        waited_before = waits_now
    pauses_s, rest_s = sum(sorted(waits)[-PAUSES:]), sum(sorted(waits)[:-PAUSES])
    return rest_s / (all_s - pauses_s) if all_s > pauses_s else 0.0


def worth_more(ranks: Iterable[Spells], most: float = MOST) -> bool:
    """Would more samples settle whether these ranks are short of input? They all wait for most of
    the time, but that may be one pause: no rank shows steps. They go in step, so one is enough.
    """
    rows = list(ranks)
    shares = [share(spells) for spells in rows]
    return min(shares, default=0.0) >= most and max(map(step_share, rows)) < most
