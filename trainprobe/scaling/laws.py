"""The laws by which time, memory and counts grow, as shapes: the level of each is found by the fit,
its form stands here.

A shape gives the logarithm of a curve that is 1 at the largest measured size. Terms never shrink
with the size, and their shares at that size add up to 1.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

IN_WORDS = {
    "constant": "stays the same",
    "linear": "grows in step",
    "n log n": "grows with n log n",
    "power": "grows with a power",
    "quadratic": "grows with the square",
    "step": "jumps at a size",
}
STEEP = 1.2
"""Above this power it is faster than the data by more than a sort (n log n stays below it) and
more than noise.
"""
# How likely each law is beforehand: the simplest are the most frequent, and a power of no whole
# number stands for mixtures that nobody listed. Found on invented sets of other seeds than those
# that the published numbers are made of (tests/unit/scaling/judged.py).
BEFOREHAND = {
    "constant": 0.16,
    "linear": 0.50,
    "n log n": 0.10,
    "power": 0.04,
    "quadratic": 0.14,
    "step": 0.06,
}
RARE = 0.01
RARE_POWERS = tuple(
    2.3 + 0.1 * number for number in range(18)
)  # pairs of rows over all rows: cubes
LOW_FLOOR, FLOORED = 0.02, 0.1
PURE = 0.35  # of a law's probability, what the curve without an offset has
_JUMPS = (1.5, 2.0, 3.0, 5.0, 8.0, 14.0)
# The share that grows in step, and how likely that is: a jump is mostly of what is flat.
_STEP_BASES = ((0.0, 0.6), (0.4, 0.1), (0.8, 0.1), (1.0, 0.2))
_STEP_SIZES = 4  # a step needs a size on either side of it, and two more to tell it from a curve
_Shares = tuple[float, ...]


@dataclass(frozen=True)
class Shape:
    """One form of a law. `log_at` takes a size; `chance` is its probability before any point was
    seen; `step_at` is where it jumps, None where it does not.
    """

    law: str
    chance: float
    log_at: Callable[[float], float]
    shares: _Shares = field(default=())
    step_at: float | None = None


def constant() -> Shape:
    """Return the law of what does not depend on the size."""
    return Shape("constant", BEFOREHAND["constant"], _flat, (1.0,))


def shapes(sizes: Sequence[float], noise: float, floor: float = 1.0) -> list[Shape]:
    """Return every shape that is tried for these sizes (ascending, each once).

    `floor` is the smallest value over the one at the largest size. Where values span decades, it is
    the only offset that fits the small sizes, and lies outside of the grid of shares. Terms whose
    share at the largest size is much below `noise`, the relative scatter, are left out: nothing
    could show them.
    """
    largest = sizes[-1]
    found = [constant()]
    for law, term in (("linear", _linear), ("n log n", _n_log_n)):
        chance = BEFOREHAND[law]
        found.append(Shape(law, chance * PURE, _curve(((1.0, term),), largest), (0.0, 1.0)))
        grid = _shares(0.69 * noise, 6.0, 0.4)
        for share in grid:
            curve = _curve(((1 - share, _one), (share, term)), largest)
            found.append(Shape(law, chance * (1 - PURE) / len(grid), curve, (1 - share, share)))
    powers = [0.3 + 0.1 * number for number in range(20)]
    for chance, group in ((BEFOREHAND["power"], powers), (RARE, RARE_POWERS)):
        each = chance / len(group)
        found += [Shape("power", each, _power(power, largest), (power,)) for power in group]
    if floor < LOW_FLOOR:
        chance, curve = BEFOREHAND["quadratic"] * FLOORED, _floored(floor, _square, largest)
        found.append(Shape("quadratic", chance, curve, (floor, 0.0, 1 - floor)))
        for power in RARE_POWERS:
            curve = _floored(floor, _raised(power), largest)
            found.append(Shape("power", RARE / len(RARE_POWERS), curve, (power,)))
    return found + _quadratics(largest, noise) + _steps(sizes)


def _quadratics(largest: float, noise: float) -> list[Shape]:
    """A square alone, and one with a part in step with the size, an offset, or both."""
    law, chance = "quadratic", BEFOREHAND["quadratic"]
    found = [Shape(law, chance * PURE, _curve(((1.0, _square),), largest), (0.0, 0.0, 1.0))]
    splits = (0.0, 0.5, 0.9, 1.0)
    grid = [(share, split) for share in _shares(noise, 4.0, 0.36) for split in splits]
    for share, split in grid:
        rest = 1 - share
        shares = (rest * (1 - split), rest * split, share)
        terms = tuple(zip(shares, (_one, _linear, _square), strict=True))
        found.append(Shape(law, chance * (1 - PURE) / len(grid), _curve(terms, largest), shares))
    return found


def _steps(sizes: Sequence[float]) -> list[Shape]:
    """A jump between two measured sizes, of what is flat or grows in step otherwise."""
    if len(sizes) < _STEP_SIZES:
        return []
    gaps = [math.sqrt(low * high) for low, high in itertools.pairwise(sizes)]
    chance = BEFOREHAND["step"] / (len(gaps) * len(_JUMPS))
    return [
        Shape("step", chance * part, _jump(share, at, by, sizes[-1]), (1 - share, share, by), at)
        for at in gaps
        for by in _JUMPS
        for share, part in _STEP_BASES
    ]


def _one(size: float) -> float:
    del size
    return 1.0


def _linear(size: float) -> float:
    return size


def _n_log_n(size: float) -> float:
    return size * math.log2(size + 1)


def _square(size: float) -> float:
    return size * size


def _raised(power: float) -> Callable[[float], float]:
    return lambda size: size**power


def _flat(size: float) -> float:
    del size
    return 0.0


def _curve(
    terms: tuple[tuple[float, Callable[[float], float]], ...], largest: float
) -> Callable[[float], float]:
    scaled = [(share / term(largest), term) for share, term in terms if share > 0]

    def log_at(size: float) -> float:
        return math.log(sum(factor * term(size) for factor, term in scaled))

    return log_at


def _floored(
    floor: float, term: Callable[[float], float], largest: float
) -> Callable[[float], float]:
    return _curve(((floor, _one), (1 - floor, term)), largest)


def _power(power: float, largest: float) -> Callable[[float], float]:
    def log_at(size: float) -> float:
        return power * math.log(size / largest)

    return log_at


def _jump(share: float, at: float, by: float, largest: float) -> Callable[[float], float]:
    base = _curve(((1 - share, _one), (share, _linear)), largest)
    before = -math.log(by)

    def log_at(size: float) -> float:
        return base(size) + (before if size < at else 0.0)

    return log_at


@functools.cache
def _shares(least: float, high: float, apart: float) -> tuple[float, ...]:
    """Shares from `least` on whose log odds lie evenly, about `apart` from each other, up to the
    log odds `high`.
    """
    low = math.log(least / (1 - least))
    count = max(2, round((high - low) / apart) + 1)
    odds = [low + (high - low) * number / (count - 1) for number in range(count)]
    return tuple(1 / (1 + math.exp(-odd)) for odd in odds)
