"""Student's t distribution for whole degrees of freedom: the error of a value whose spread is
estimated from few points.
"""

from __future__ import annotations

import functools
import math

NODES = 21
"""So many values stand for one distribution; more of them change a 90 % interval by less than
one part in a hundred.
"""


def distribution(value: float, freedom: int) -> float:
    """Return the probability of a t below `value`, by the finite series (Abramowitz and Stegun
    26.7.3 and 26.7.4).
    """
    angle = math.atan(value / math.sqrt(freedom))
    cosine2 = math.cos(angle) ** 2
    term = total = math.cos(angle) if freedom % 2 and freedom > 1 else 0.0 if freedom % 2 else 1.0
    for number in range(3 if freedom % 2 else 2, freedom - 1, 2):
        term *= cosine2 * (number - 1) / number
        total += term
    if freedom % 2:
        return 0.5 + (angle + math.sin(angle) * total) / math.pi
    return 0.5 + math.sin(angle) * total / 2


@functools.cache
def nodes(freedom: int) -> tuple[float, ...]:
    """Return `NODES` values of equal probability, lowest first."""
    return tuple(_quantile((number + 0.5) / NODES, freedom) for number in range(NODES))


def _quantile(share: float, freedom: int) -> float:
    low, high = -1e3, 1e3
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if distribution(middle, freedom) < share else (low, middle)
    return (low + high) / 2
