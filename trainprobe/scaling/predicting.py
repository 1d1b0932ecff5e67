"""What a fit says of a size that was not measured: a value with its interval, and when a limit
is reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from trainprobe.scaling.fitting import Fit
from trainprobe.scaling.laws import STEEP
from trainprobe.scaling.student import NODES, nodes

LOW, HIGH = 0.05, 0.95
ANNOUNCED = 0.48
"""From this probability on a limit is announced: held against invented sets, fewer than 2 % of
announcements are false (docs/predictions.md).
"""
FAR = 30.0  # times the largest measured size
ANNOUNCED_FAR = 0.65
"""And this far or further: the same part of the announcements is false there."""
_FURTHEST = 1e6  # a limit that is reached only at a size a million times the largest is not reached
_AHEAD = 10.0
_LARGEST = 200.0  # a logarithm beyond any number that means something
_SURE_STEEP = 0.7


@dataclass(frozen=True)
class Interval:
    """The median, and the ends of the interval that holds the value in 90 of 100 cases."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Crossing:
    """The size at which a limit is reached: the likeliest, and the earliest and latest of a 90 %
    interval; `latest` is None where it may never be.
    """

    size: float
    earliest: float
    latest: float | None


def interval(fit: Fit, size: float) -> Interval:
    """Return what will be measured at `size`, the noise of a single measurement included."""
    low, middle, high = _quantiles(_values(fit, size), (LOW, 0.5, HIGH))
    return Interval(*(math.exp(min(item, _LARGEST)) for item in (middle, low, high)))


def share_above(fit: Fit, size: float, limit: float) -> float:
    """Return how probable it is that the value at `size` is above `limit`."""
    if limit <= 0:
        return 1.0
    at = math.log(limit)
    return min(1.0, sum(weight for value, weight in _values(fit, size) if value > at))


def announced(fit: Fit, size: float, limit: float) -> bool:
    """Return whether it is clear enough that `limit` will be passed at `size`."""
    return share_above(fit, size, limit) >= least_chance(fit, size)


def least_chance(fit: Fit, size: float) -> float:
    """Return the probability from which on a limit is announced at `size`: the further away, the
    more has to be seen.
    """
    return ANNOUNCED if size <= FAR * fit.largest * (1 + 1e-9) else ANNOUNCED_FAR


def crossing(fit: Fit, limit: float) -> Crossing | None:
    """Return the size at which `limit` is passed; None where that is nowhere within a million
    times the largest measured size.
    """
    found = [_reached(fit, limit, share) for share in (LOW, 0.5, HIGH)]
    return Crossing(found[1], found[0] or found[1], found[2]) if found[1] is not None else None


def exponent(fit: Fit) -> float:
    """Return the power of the growth just beyond the largest measured size: 1 is in step with
    the size, 2 with its square.
    """
    return _quantiles(
        [(_power(fit, number), item.weight) for number, item in enumerate(fit.components)], (0.5,)
    )[0]


def steep(fit: Fit) -> bool | None:
    """Return whether it grows faster than a sort would: None where the points leave that open."""
    share = sum(
        item.weight for number, item in enumerate(fit.components) if _power(fit, number) > STEEP
    )
    return True if share >= _SURE_STEEP else False if share <= 1 - _SURE_STEEP else None


def _power(fit: Fit, number: int) -> float:
    log_at = fit.components[number].shape.log_at
    return (log_at(_AHEAD * fit.largest) - log_at(fit.largest)) / math.log(_AHEAD)


def _values(fit: Fit, size: float) -> list[tuple[float, float]]:
    """Logarithms of possible values with their weights."""
    found = []
    for component in fit.components:
        middle, part = component.level + component.shape.log_at(size), component.weight / NODES
        found += [(middle + component.scatter * node, part) for node in nodes(component.freedom)]
    return found


def _quantiles(weighted: list[tuple[float, float]], shares: tuple[float, ...]) -> list[float]:
    """Values below which these shares of the weight lie, between two values by the straight
    line.
    """
    weighted.sort()
    total = sum(weight for _, weight in weighted)
    found: list[float] = []
    below, last_value, last_share = 0.0, weighted[0][0], 0.0
    wanted = iter(shares)
    share = next(wanted, None)
    for value, weight in weighted:
        middle = (below + weight / 2) / total
        while share is not None and middle >= share:
            part = (share - last_share) / (middle - last_share) if middle > last_share else 1.0
            found.append(last_value + part * (value - last_value))
            share = next(wanted, None)
        below, last_value, last_share = below + weight, value, middle
    while share is not None:
        found.append(last_value)
        share = next(wanted, None)
    return found


def _reached(fit: Fit, limit: float, share: float) -> float | None:
    """The smallest size at which the limit is passed with this probability."""
    low, high = math.log(fit.points[0].size), math.log(fit.largest * _FURTHEST)
    if share_above(fit, math.exp(high), limit) < share:
        return None
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if share_above(fit, math.exp(middle), limit) >= share else (middle, high)
        )
    return math.exp(high)
