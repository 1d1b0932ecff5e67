"""The fit of all laws at once to few and noisy points.

Noise is a factor: the logarithms of the values scatter evenly around those of the curve. For each
shape the level and the scatter are integrated out (a normal law with unknown mean and variance), so
what is left is how well it foretells each point from the smaller ones: the chain of these held-out
densities is the weight of a shape, and a form that could have bent in many ways is worth less than
a plain one that fits as well.
Nothing is chosen and then believed: a prediction mixes all shapes by their weight. Once per data
set one point may be wrong (a cold cache, a neighbour's load): each fit is made also without each
point, at the price that a wrong point is rare.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainprobe.scaling.laws import Shape, shapes
from trainprobe.scaling.student import distribution

LEAST_SIZES = 3
LEAST_SPREAD = 4.0
"""The largest size over the smallest: below it no law can be told from another."""
NOISE = 0.1  # how much numbers scatter, relative, where nothing else is known: as much as times do
_PRIOR_POINTS = 8  # what is known of the noise beforehand counts like so many points
_WRONG = 0.02  # a point is wrong altogether
_WRONG_DENSITY = 1 / (4 * math.log(10))  # and then it may be two decades off to either side
_LEAST_WEIGHT = 1e-4  # of the likeliest shape's
EXCLUDED = 0.02
"""A measurement that the law makes less likely than this is none of it."""
_KEPT = 0.999  # of the whole weight; what is left out moves no interval


@dataclass(frozen=True)
class Point:
    """A measured value at a size; both above 0."""

    size: float
    value: float


class TooFewError(ValueError):
    """The points do not allow a law; `says` is why, in a sentence without its full stop."""

    def __init__(self, says: str) -> None:
        super().__init__(says)
        self.says = says


@dataclass(frozen=True)
class Component:
    """One shape with its weight: the logarithm of a value is `level` + shape + `scatter` times t
    with `freedom` degrees.
    """

    shape: Shape
    weight: float
    level: float
    scatter: float
    freedom: int

    def share_above(self, size: float, value: float) -> float:
        """How probable it is that more than `value` is measured at `size`."""
        off = (math.log(value) - self.level - self.shape.log_at(size)) / self.scatter
        return 1 - distribution(off, self.freedom)


@dataclass(frozen=True)
class Fit:
    """All shapes that the points leave possible, the likeliest first; the weights add up to 1."""

    points: tuple[Point, ...]
    components: tuple[Component, ...]

    @property
    def law(self) -> str:
        """The law with the most weight, over all of its shapes."""
        weights = self.weights()
        return max(weights, key=lambda name: weights[name])

    def weights(self) -> dict[str, float]:
        """The weight of each law."""
        found: dict[str, float] = defaultdict(float)
        for component in self.components:
            found[component.shape.law] += component.weight
        return dict(found)

    @property
    def best(self) -> Component:
        """The likeliest shape of the likeliest law."""
        law = self.law
        return max(
            (component for component in self.components if component.shape.law == law),
            key=lambda component: component.weight,
        )

    @property
    def largest(self) -> float:
        """The largest measured size."""
        return self.points[-1].size


def fit(points: Iterable[Point], noise: float = NOISE, at_least: Iterable[Point] = ()) -> Fit:
    """Fit all laws. `noise` is the relative scatter that such numbers have: 0.1 for times, less for
    memory and counts.

    `at_least` are lower bounds, of sizes that did not end in their time (right-censored): a shape
    counts as much as it makes them likely. Where all shapes together all but exclude a bound, it is
    no matter of growth (something stood still there), and is left out.

    Raises TooFewError where there are fewer than three sizes, or where the largest is less than
    four times the smallest.
    """
    own = sorted(
        (
            point
            for point in points
            if point.size > 0
            and point.value > 0
            and math.isfinite(point.size)
            and math.isfinite(point.value)
        ),
        key=lambda point: point.size,
    )
    sizes = sorted({item.size for item in own})
    if len(sizes) < LEAST_SIZES:
        raise TooFewError(
            f"{len(sizes)} {'size was' if len(sizes) == 1 else 'sizes were'} measured, and a law"
            f" needs {LEAST_SIZES}"
        )
    if sizes[-1] < LEAST_SPREAD * sizes[0]:
        raise TooFewError(
            f"the largest size is only {sizes[-1] / sizes[0]:.1f} times the smallest, and a law"
            f" needs {LEAST_SPREAD:g} times"
        )
    logs = [math.log(item.value) for item in own]
    spare = [number for number, item in enumerate(own) if _is_spare(number, own, sizes)]
    evidence = _Evidence(len(own), noise)
    found = [
        found
        for shape in shapes(sizes, noise, math.exp(min(logs) - logs[-1]))
        for found in evidence.components(
            shape,
            [log - shape.log_at(item.size) for log, item in zip(logs, own, strict=True)],
            spare,
        )
    ]
    top = max(log_weight for log_weight, _ in found)
    kept = [
        (math.exp(log_weight - top), item)
        for log_weight, item in found
        if log_weight - top > math.log(_LEAST_WEIGHT)
    ]
    found_fit = Fit(tuple(own), _heaviest(kept))
    for bound in at_least:
        survived = [
            (component.weight * component.share_above(bound.size, bound.value), component)
            for component in found_fit.components
        ]
        if sum(weight for weight, _ in survived) >= EXCLUDED:
            found_fit = Fit(found_fit.points, _heaviest(survived))
    return found_fit


def _heaviest(found: list[tuple[float, Component]]) -> tuple[Component, ...]:
    """The components that hold nearly all of the weight, with weights that add up to 1."""
    found.sort(key=lambda entry: -entry[0])
    enough, total = _KEPT * sum(weight for weight, _ in found), 0.0
    kept = []
    for weight, item in found:
        kept.append((weight, item))
        total += weight
        if total >= enough:
            break
    return tuple(
        Component(entry.shape, weight / total, entry.level, entry.scatter, entry.freedom)
        for weight, entry in kept
    )


def _is_spare(number: int, points: Sequence[Point], sizes: Sequence[float]) -> bool:
    """May this point be wrong and enough be left? The only one at the largest size may not: what
    it says of the law nobody else could.
    """
    alone = sum(point.size == points[number].size for point in points) == 1
    return len(points) > LEAST_SIZES and not (
        alone and (len(sizes) == LEAST_SIZES or points[number].size == sizes[-1])
    )


class _Evidence:
    """Marginal densities of `count` residuals, level and scatter integrated out (flat in the
    level, inverse gamma in the variance).
    """

    def __init__(self, count: int, noise: float) -> None:
        self.count = count
        self.prior = _PRIOR_POINTS * noise**2
        self.constants = {
            number: self._constant(number) for number in (count, count - 1) if number > 0
        }

    def _constant(self, number: int) -> float:
        start, half = _PRIOR_POINTS / 2, self.prior / 2
        gammas = math.lgamma(start + (number - 1) / 2) - math.lgamma(start)
        return (
            gammas
            + start * math.log(half)
            - (number - 1) / 2 * math.log(2 * math.pi)
            - math.log(number) / 2
        )

    def components(
        self, shape: Shape, residuals: Sequence[float], spare: Sequence[int]
    ) -> list[tuple[float, Component]]:
        """Return the shape's log weight and component: with all points, and without each that
        may be wrong.
        """
        number = self.count
        level = sum(residuals) / number
        squares = sum((residual - level) ** 2 for residual in residuals)
        chance = math.log(shape.chance)
        found = [self._one(shape, chance, number, level, squares)]
        price = chance + math.log(_WRONG * _WRONG_DENSITY)
        for place in spare:
            off = residuals[place] - level
            left = max(squares - off * off * number / (number - 1), 0.0)
            found.append(self._one(shape, price, number - 1, level - off / (number - 1), left))
        return found

    def _one(
        self, shape: Shape, chance: float, number: int, level: float, squares: float
    ) -> tuple[float, Component]:
        freedom = _PRIOR_POINTS + number - 1
        log_weight = (
            chance + self.constants[number] - freedom / 2 * math.log((self.prior + squares) / 2)
        )
        variance = (self.prior + squares) / freedom
        return log_weight, Component(
            shape, 0.0, level, math.sqrt(variance * (1 + 1 / number)), freedom
        )
