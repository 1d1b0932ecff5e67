"""Counts that stay the same between sizes far apart do not grow with the size."""

from __future__ import annotations

import pytest

from trainprobe.scaling import Point, interval, unmoved


def points(*pairs: tuple[float, float]) -> list[Point]:
    return [Point(size, value) for size, value in pairs]


def test_what_stays_is_foretold_as_it_is_however_far() -> None:
    found = unmoved(points((2, 9), (100, 12), (1000, 12)), 0.02)

    assert found is not None
    assert found.law == "constant"
    said = interval(found, 14.8e6)
    assert said.low < 12 < said.high < 13


@pytest.mark.parametrize(
    "sizes",
    [
        [(2, 8), (100, 8), (1000, 30)],  # it grows at the end
        [(2, 20), (100, 9), (1000, 20)],  # and here it only seems to stay
        [(500, 12), (1000, 12)],  # too near to each other
        [(1000, 12)],
    ],
)
def test_what_grows_or_was_seen_only_once_is_left_to_the_fit(
    sizes: list[tuple[float, float]],
) -> None:
    assert unmoved(points(*sizes), 0.02) is None
