"""Amounts and sizes as text: `94 GiB`, `41 min 03 s`, `14.8 M rows x 8 ranks`."""

from __future__ import annotations

import math
from collections.abc import Mapping

_BINARY = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_THOUSANDS = ("", "k", "M", "G", "T")
_ONE = {"rows": "row", "ranks": "rank", "workers": "worker", "steps": "step"}


def amount(value: float, unit: str) -> str:
    """Return a value with its unit; bytes in GiB and their like, seconds in minutes and hours,
    counts with their thousands apart.
    """
    if not math.isfinite(value):
        return "no end"
    if unit == "bytes":
        return _bytes(value)
    if unit == "s":
        return _seconds(value)
    return f"{value:,.0f}"


def span(low: float, high: float, unit: str) -> str:
    """Return `88-101 GiB`: both ends in the unit of the higher one where that leaves a number to
    read.
    """
    if unit == "bytes" and low > 0 and high / low < 100:
        power = _power(high)
        return f"{_short(low / 1024**power)}-{_short(high / 1024**power)} {_BINARY[power]}"
    first, second = amount(low, unit), amount(high, unit)
    return (
        first if first == second else f"{first} - {second}" if unit == "s" else f"{first}-{second}"
    )


def number(count: float) -> str:
    """Return `14.8 M`, `90 k`, `310`."""
    power = 0
    while count >= 999.5 and power < len(_THOUSANDS) - 1:
        count, power = count / 1000, power + 1
    return f"{_short(count)} {_THOUSANDS[power]}".rstrip()


def sizes(at: Mapping[str, int]) -> str:
    """Return `14.8 M rows x 8 ranks x 4 workers`."""
    return " x ".join(
        f"{number(count)} {_ONE.get(name, name) if count == 1 else name}"
        for name, count in at.items()
    )


def _bytes(value: float) -> str:
    power = _power(value)
    return f"{_short(value / 1024**power)} {_BINARY[power]}"


def _power(value: float) -> int:
    power = 0
    while value >= 1023.5 and power < len(_BINARY) - 1:
        value, power = value / 1024, power + 1
    return power


def _short(value: float) -> str:
    """Three figures at the most, no zeros behind the point."""
    if value >= 100 or float(value).is_integer():
        return f"{value:.0f}"
    text = f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _seconds(value: float) -> str:
    if value < 0.0995:
        return f"{1000 * value:.0f} ms"
    if value < 9.95:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s" if whole % 60 else f"{whole // 60} min"
    if whole < 48 * 3600:
        return (
            f"{whole // 3600} h {whole % 3600 // 60:02d} min"
            if whole % 3600 >= 60
            else f"{whole // 3600} h"
        )
    return f"{number(whole / 86400)} days"
