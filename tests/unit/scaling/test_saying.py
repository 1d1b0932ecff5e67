"""Amounts and sizes as a reader wants them."""

from __future__ import annotations

import pytest

from trainprobe.scaling.wording import amount, number, sizes, span


@pytest.mark.parametrize(
    ("value", "unit", "says"),
    [
        (94 * 2.0**30, "bytes", "94 GiB"),
        (1.14 * 2.0**40, "bytes", "1.14 TiB"),
        (0.0, "bytes", "0 bytes"),
        (2463.0, "s", "41 min 03 s"),
        (1800.0, "s", "30 min"),
        (34_140.0, "s", "9 h 29 min"),
        (0.05, "s", "50 ms"),
        (8 * 86400.0, "s", "8 days"),
        (1024.0, "", "1,024"),
        (7.7, "", "8"),
        (float("inf"), "s", "no end"),
    ],
)
def test_amounts(value: float, unit: str, says: str) -> None:
    assert amount(value, unit) == says


def test_sizes_and_spans() -> None:
    assert (
        sizes({"rows": 14_800_000, "ranks": 8, "workers": 1}) == "14.8 M rows x 8 ranks x 1 worker"
    )
    assert number(999_999) == "1 M"
    assert span(88 * 2.0**30, 101 * 2.0**30, "bytes") == "88-101 GiB"
    assert span(5 * 2.0**20, 2.0**40, "bytes") == "5 MiB-1 TiB"
    assert span(60.0, 90.0, "s") == "1 min - 1 min 30 s"
    assert span(44.0, 44.0, "") == "44"
