"""Invented measurements of known law with noise: what a prediction is held against. Each set
follows from its seed.

The laws were written down before the fit: numbers that stay, a start-up and so much for each row,
sorts, squares that show only at the largest sizes, memory with a base, jumps. Sizes span one to
four decades, three to eight of them, some measured twice; noise is 5 to 15 %, as a factor.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

AHEAD = 30.0
"""The size that is asked for, in times of the largest measured one."""
Curve = Callable[[float], float]


@dataclass(frozen=True)
class Invented:
    """One set. `target` is the size asked for, `truth` the value there without noise, `seen`
    with it; `limit` lies above all that was measured.
    """

    law: str
    points: tuple[tuple[float, float], ...]
    noise: float
    target: float
    truth: float
    seen: float
    limit: float

    @property
    def hit(self) -> bool:
        """Will the limit be passed?"""
        return self.truth > self.limit

    @property
    def close(self) -> bool:
        """Does the truth lie within a quarter of the limit? Noise of the measurements alone then
        decides.
        """
        return 0.8 < self.truth / self.limit < 1.25


def _constant(rng: random.Random, sizes: list[float]) -> Curve:
    del rng, sizes
    return lambda size: 1.0 + 0 * size


def _offset_linear(rng: random.Random, sizes: list[float]) -> Curve:
    share, largest = rng.uniform(0.3, 1.0), sizes[-1]
    return lambda size: 1 - share + share * size / largest


def _n_log_n(rng: random.Random, sizes: list[float]) -> Curve:
    del rng
    largest = sizes[-1]
    return lambda size: size * math.log2(size) / largest


def _quadratic(rng: random.Random, sizes: list[float]) -> Curve:
    """With a part in step with the rows; the square has 30 % to all of it at the largest size."""
    share, largest = math.exp(rng.uniform(math.log(0.3), 0.0)), sizes[-1]
    return lambda size: (1 - share) * size / largest + share * (size / largest) ** 2


def _hidden_square(rng: random.Random, sizes: list[float]) -> Curve:
    share, largest = rng.uniform(0.05, 0.3), sizes[-1]
    return lambda size: (1 - share) * size / largest + share * (size / largest) ** 2


def _memory(rng: random.Random, sizes: list[float]) -> Curve:
    """The base of a process that has imported torch, and so much for each row: a fifth to nearly
    all at the largest size.
    """
    share, largest = rng.uniform(0.2, 0.97), sizes[-1]
    return lambda size: 1 - share + share * size / largest


def _start_up(rng: random.Random, sizes: list[float]) -> Curve:
    """Most of the time is start-up, at every size that was measured."""
    share, largest = rng.uniform(0.15, 0.5), sizes[-1]
    return lambda size: 1 - share + share * size / largest


def _step_before(rng: random.Random, sizes: list[float]) -> Curve:
    """The jump lies below all sizes: nothing is to be seen of it."""
    return _offset_linear(rng, sizes)


def _step_inside(rng: random.Random, sizes: list[float]) -> Curve:
    """The jump lies between two sizes, with two or more beyond it."""
    place = rng.randrange(len(sizes) - 2)
    at, by, flat, largest = (
        math.sqrt(sizes[place] * sizes[place + 1]),
        rng.uniform(2, 8),
        rng.random() < 0.4,
        sizes[-1],
    )
    return lambda size: (1.0 if flat else size / largest) / (by if size < at else 1.0)


def _step_after(rng: random.Random, sizes: list[float]) -> Curve:
    """The jump lies beyond the size that is asked for."""
    return _offset_linear(rng, sizes)


LAWS: dict[str, Callable[[random.Random, list[float]], Curve]] = {
    "constant": _constant,
    "linear with an offset": _offset_linear,
    "n log n": _n_log_n,
    "quadratic with a linear part": _quadratic,
    "memory: base and so much a row": _memory,
    "heavy start-up": _start_up,
    "step before the sizes": _step_before,
    "step between the sizes": _step_inside,
    "step after the target": _step_after,
}


APART: dict[str, Callable[[random.Random, list[float]], Curve]] = {
    "square within the noise": _hidden_square
}


def invent(law: str, seed: int) -> Invented:
    """Return the set of this law and seed."""
    rng = random.Random(f"{law}/{seed}")
    count = rng.randint(4 if law == "step between the sizes" else 3, 8)
    smallest, decades = 10 ** rng.uniform(0.5, 3.0), rng.uniform(1.0, 4.0)
    sizes = [smallest * 10 ** (decades * number / (count - 1)) for number in range(count)]
    sizes = sorted({float(max(2, round(size))) for size in sizes})
    curve, level, noise = (
        (LAWS | APART)[law](rng, sizes),
        10 ** rng.uniform(-1, 4),
        rng.uniform(0.05, 0.15),
    )
    measured = [size for size in sizes for _ in range(2 if rng.random() < 0.15 else 1)]
    points = tuple((size, level * curve(size) * math.exp(rng.gauss(0, noise))) for size in measured)
    target = AHEAD * sizes[-1]
    truth = level * curve(target)
    seen = truth * math.exp(rng.gauss(0, noise))
    floor = 1.05 * max(value for _, value in points)
    beyond = truth <= floor or rng.random() < 0.5
    limit = (
        max(truth, floor) * math.exp(rng.uniform(0.0, math.log(30)))
        if beyond
        else math.exp(rng.uniform(math.log(floor), math.log(truth)))
    )
    return Invented(law, points, noise, target, truth, seen, limit)


def hidden_square(seed: int) -> Invented:
    """A square that has 5 to 30 % at the largest measured size, mostly within the noise: no fit
    can tell it from growth in step. It is counted apart.
    """
    return invent("square within the noise", seed)


def step_unforeseen(seed: int) -> Invented:
    """A jump between the largest measured size and the one asked for, of which no measurement
    knows: no law can foretell it. It is counted apart.
    """
    rng = random.Random(f"unforeseen/{seed}")
    one = invent("linear with an offset", seed)
    by = rng.uniform(3, 8)
    return Invented(
        "step between the sizes and the target",
        one.points,
        one.noise,
        one.target,
        one.truth * by,
        one.seen * by,
        one.limit,
    )
