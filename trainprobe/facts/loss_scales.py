"""Loss scales that a log prints and that only ever fall.

A scaler halves its scale at each step that overflows, and doubles it again after thousands of clean
ones. At the start it searches from a large value down, within as many steps; a scale that falls
again and again later on belongs to a model whose gradients run away.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable

from trainprobe.facts.log_events import LogEvent

FALLS = 5
LOW = 16_384.0  # a quarter of half precision's largest number
SEARCH_S = 30.0  # falls that are closer to one another are those of the search


def run_down(events: Iterable[LogEvent]) -> tuple[LogEvent, ...]:
    """The lines that told another scale than the one before, where each is lower, the last is low,
    and most came long after one another; none otherwise.
    """
    told = sorted(
        (event for event in events if event.event == "loss-scale-told" and event.at is not None),
        key=lambda event: event.place or 0,
    )
    scales = [float(event.captured["scale"]) for event in told]
    changes = [
        number for number, scale in enumerate(scales) if not number or scale != scales[number - 1]
    ]
    shown = [told[number] for number in changes]
    falls = [scales[number] for number in changes]
    if len(shown) <= FALLS or falls[-1] > LOW or falls != sorted(falls, reverse=True):
        return ()
    apart = [(after.at or 0.0) - (one.at or 0.0) for one, after in itertools.pairwise(shown)]
    return tuple(shown) if statistics.median(apart) >= SEARCH_S else ()
