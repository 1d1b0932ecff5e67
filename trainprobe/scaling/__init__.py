"""How a number grows with a size: laws, their fit to few and noisy points, and predictions with
an interval. Pure; only the standard library.
"""

from trainprobe.scaling.counts import unmoved
from trainprobe.scaling.fitting import EXCLUDED, Component, Fit, Point, TooFewError, fit
from trainprobe.scaling.laws import IN_WORDS, STEEP
from trainprobe.scaling.predicting import (
    ANNOUNCED,
    ANNOUNCED_FAR,
    FAR,
    Crossing,
    Interval,
    announced,
    crossing,
    exponent,
    interval,
    least_chance,
    share_above,
    steep,
)

__all__ = [
    "ANNOUNCED",
    "ANNOUNCED_FAR",
    "EXCLUDED",
    "FAR",
    "IN_WORDS",
    "STEEP",
    "Component",
    "Crossing",
    "Fit",
    "Interval",
    "Point",
    "TooFewError",
    "announced",
    "crossing",
    "exponent",
    "fit",
    "interval",
    "least_chance",
    "share_above",
    "steep",
    "unmoved",
]
