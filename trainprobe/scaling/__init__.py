"""How a number grows with a size: laws, their fit to few and noisy points, and predictions with an interval. Pure; only the standard library."""

from trainprobe.scaling.fitting import Component, Fit, Point, TooFewError, fit
from trainprobe.scaling.laws import IN_WORDS, STEEP
from trainprobe.scaling.predicting import ANNOUNCED, Crossing, Interval, announced, crossing, exponent, interval, share_above, steep

__all__ = [
    "ANNOUNCED",
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
    "share_above",
    "steep",
]
