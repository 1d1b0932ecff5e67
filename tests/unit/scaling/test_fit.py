"""Laws on plain data: what is chosen, what is left open, what is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from trainprobe.scaling import (
    Point,
    TooFewError,
    crossing,
    exponent,
    fit,
    interval,
    share_above,
    steep,
)
from trainprobe.scaling.student import distribution, nodes

SIZES = (100.0, 300.0, 1000.0, 3000.0, 10000.0)
# Factors of noise about 3 %, the same in each test.
NOISE = (1.02, 0.97, 1.01, 0.98, 1.03)


def points(
    curve: Mapping[float, float] | None = None,
    *,
    offset: float = 0,
    linear: float = 0,
    n_log_n: float = 0,
    square: float = 0,
) -> list[Point]:
    def value(size: float) -> float:
        return offset + linear * size + n_log_n * size * math.log2(size) + square * size**2

    values = curve or {size: value(size) for size in SIZES}
    return [Point(size, values[size] * noise) for size, noise in zip(values, NOISE, strict=False)]


@pytest.mark.parametrize(
    ("law", "own"),
    [
        ("constant", {"offset": 40.0}),
        ("linear", {"linear": 0.01}),
        ("linear", {"offset": 30.0, "linear": 0.01}),
        ("quadratic", {"square": 1e-5}),
        ("quadratic", {"linear": 0.01, "square": 1e-5}),
    ],
)
def test_the_law_of_clean_data_is_found_and_its_prediction_holds(
    law: str, own: dict[str, float]
) -> None:
    found = fit(points(None, **own), noise=0.05)
    assert found.law == law
    at = 300_000.0
    truth = own.get("offset", 0) + own.get("linear", 0) * at + own.get("square", 0) * at**2
    said = interval(found, at)
    assert said.low <= truth <= said.high
    assert said.value == pytest.approx(truth, rel=0.2)


def test_a_sort_is_not_steep_and_a_square_is() -> None:
    assert steep(fit(points(n_log_n=0.01), 0.05)) is False
    assert steep(fit(points(linear=0.01), 0.05)) is False
    square = fit(points(square=1e-5), 0.05)
    assert steep(square) is True
    assert exponent(square) == pytest.approx(2.0, abs=0.05)


def test_a_cube_is_foretold_within_its_interval() -> None:
    found = fit([Point(size, 1e-10 * size**3) for size in (500, 1000, 2000, 4000, 8000)])
    said = interval(found, 240_000)
    assert said.low <= 1e-10 * 240_000**3 <= said.high
    assert exponent(found) == pytest.approx(3.0, abs=0.15)


def test_a_size_that_did_not_end_counts_as_a_lower_bound() -> None:
    few = [Point(100, 1.0), Point(1000, 10.5), Point(10000, 160.0)]
    without, bounded = fit(few), fit(few, at_least=[Point(40000, 1500.0)])
    assert interval(bounded, 300_000).low > interval(without, 300_000).low
    assert interval(bounded, 300_000).value > interval(without, 300_000).value
    assert exponent(bounded) > exponent(without)
    slack = fit(few, at_least=[Point(40000, 1.0)])  # that it takes longer was clear before
    assert interval(slack, 300_000).value == pytest.approx(
        interval(without, 300_000).value, rel=0.01
    )


def test_a_bound_that_no_law_allows_is_no_matter_of_growth() -> None:
    linear = points(linear=0.01)
    bounded = fit(linear, 0.05, [Point(20_000, 90_000.0)])
    assert interval(bounded, 300_000) == interval(fit(linear, 0.05), 300_000)


def test_three_sizes_that_could_be_anything_leave_it_open() -> None:
    """From in step to a square: both fit, and the interval says so."""
    found = fit([Point(100, 1.0), Point(1000, 10.5), Point(10000, 160.0)])
    said = interval(found, 300_000)
    assert said.high / said.low > 4


def test_a_jump_is_a_step_and_not_a_power() -> None:
    found = fit(points({100: 2.0, 300: 2.0, 1000: 8.0, 3000: 8.0, 10000: 8.0}), 0.05)
    assert found.law == "step"
    assert interval(found, 300_000).value == pytest.approx(8.0, rel=0.1)


def test_one_wrong_point_does_not_turn_the_law() -> None:
    """A cold cache at the smallest size."""
    own = points(linear=0.01)
    found = fit([Point(100, 30.0), *own[1:]], 0.05)
    said = interval(found, 300_000)
    assert said.value == pytest.approx(3000, rel=0.15)


def test_when_a_limit_is_reached() -> None:
    found = fit(points(offset=40, linear=0.03), 0.03)
    at = crossing(found, 1024.0)
    assert at is not None
    assert at.size == pytest.approx((1024 - 40) / 0.03, rel=0.1)
    assert at.earliest < at.size < (at.latest or math.inf)
    assert share_above(found, 2 * at.size, 1024.0) > 0.95
    assert share_above(found, 0.5 * at.size, 1024.0) < 0.05


def test_what_stays_reaches_no_limit() -> None:
    """Descriptors are counts: the same five times leaves no room for growth that reaches a limit
    a hundred times as high soon.
    """
    found = fit([Point(size, 44.0) for size in SIZES], 0.01)
    assert share_above(found, 300_000, 1024.0) < 0.05


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ([], "0 sizes were measured"),
        ([Point(100, 1.0)], "1 size was measured"),
        ([Point(100, 1.0), Point(100, 1.1), Point(400, 4.0)], "2 sizes were measured"),
        ([Point(100, 1.0), Point(200, 2.0), Point(300, 3.0)], "only 3.0 times the smallest"),
        ([Point(100, 0.0), Point(1000, 0.0), Point(10000, 5.0)], "1 size was measured"),
        ([Point(100, math.nan), Point(1000, math.inf), Point(10000, 5.0)], "1 size was measured"),
    ],
)
def test_too_few_points_are_refused_with_the_reason(own: list[Point], says: str) -> None:
    with pytest.raises(TooFewError) as told:
        fit(own)
    assert says in told.value.says


def test_repeats_and_order_do_not_matter() -> None:
    own = points(linear=0.01)
    one, other = fit([*own, own[2]]), fit([own[2], *reversed(own)])
    assert interval(one, 1e5).value == pytest.approx(interval(other, 1e5).value)


def test_the_largest_numbers_do_not_break_it() -> None:
    found = fit([Point(size, size * 1e12) for size in (1e3, 1e5, 1e7)])
    assert interval(found, 1e12).value == pytest.approx(1e24, rel=0.3)


def test_students_t_is_the_one_of_the_tables() -> None:
    """Abramowitz and Stegun, table 26.10."""
    assert distribution(2.015, 5) == pytest.approx(0.95, abs=1e-4)
    assert distribution(1.860, 8) == pytest.approx(0.95, abs=1e-4)
    assert distribution(6.314, 1) == pytest.approx(0.95, abs=1e-4)
    assert distribution(-2.571, 5) == pytest.approx(0.025, abs=1e-4)
    assert nodes(7)[10] == pytest.approx(0.0, abs=1e-9)
