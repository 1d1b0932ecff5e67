"""Counts of threads, files and the like: a count that did not grow from one size to a much larger
one does not grow with the size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainprobe.scaling.fitting import LEAST_SPREAD, Component, Fit, Point
from trainprobe.scaling.laws import constant

_SLACK, _SHARE = 2.0, 0.1
_FREEDOM = 30


def unmoved(points: Sequence[Point], noise: float) -> Fit | None:
    """Return the constant that the largest sizes show, or None where they still grow.

    A thread or a file more or less is no growth (2, or a tenth). Smaller sizes may lie below: two
    rows end before all workers stand. A time or a memory may hide a slope in its noise that matters
    a thousand times further; a count of whole things that stays is another matter.
    """
    own = sorted(points, key=lambda point: point.size)
    if not own:
        return None
    last = own[-1].value
    tail = [item for item in own if abs(item.value - last) <= max(_SLACK, _SHARE * last)]
    lowest = min((item.size for item in tail), default=own[-1].size)
    # All sizes from there on must agree, and lie far enough apart.
    if own[-1].size < LEAST_SPREAD * lowest or any(
        item not in tail for item in own if item.size >= lowest
    ):
        return None
    most = max(item.value for item in tail)
    return Fit(tuple(own), (Component(constant(), 1.0, math.log(most), noise, _FREEDOM),))
