"""Reading fields of untrusted data: a missing field gives the default, one of a wrong type makes
its record unreadable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
TEXT_CAP = 200_000
NUMBER_CAP = 2**63


class UnreadableError(ValueError):
    """The data does not have the shape of its kind."""


def text(data: Mapping[str, Any], name: str, default: str = "", cap: int = TEXT_CAP) -> str:
    value = data.get(name)
    if value is None:
        return default
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise UnreadableError(f"{name} is no text")
    return value[:cap]


def whole(data: Mapping[str, Any], name: str) -> int | None:
    value = data.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < NUMBER_CAP:
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= NUMBER_CAP:
        raise UnreadableError(f"{name} is no whole number")
    return value


def number(data: Mapping[str, Any], name: str) -> float | None:
    value = data.get(name)
    if value is None:
        return None
    if (
        not isinstance(value, (int, float))
        or isinstance(value, bool)
        or abs(value) >= NUMBER_CAP
        or not math.isfinite(value)
    ):
        raise UnreadableError(f"{name} is no number")
    return float(value)


def flag(data: Mapping[str, Any], name: str) -> bool | None:
    value = data.get(name)
    if value is not None and not isinstance(value, bool):
        raise UnreadableError(f"{name} is neither true nor false")
    return value


def texts(data: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(value[:TEXT_CAP] for value in items(data, name) if isinstance(value, str))


def wholes(data: Mapping[str, Any], name: str) -> tuple[int, ...]:
    return tuple(
        value
        for value in items(data, name)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < NUMBER_CAP
    )


def items(data: Mapping[str, Any], name: str) -> list[Any]:
    value = data.get(name)
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise UnreadableError(f"{name} is no list")
    return list(value)


def part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UnreadableError(f"{name} is no object")
    return value


def each(rows: Iterable[Any], build: Callable[[Mapping[str, Any]], T]) -> list[T]:
    """Build one `T` per row. Single bad rows are left out; when all are bad the whole is
    unreadable.
    """
    built: list[T] = []
    bad = 0
    for row in rows:
        if not isinstance(row, Mapping):
            bad += 1
            continue
        try:
            built.append(build(row))
        except UnreadableError:
            bad += 1
    if bad and not built:
        raise UnreadableError("no row can be read")
    return built


def plain(value: Any, depth: int = 0) -> Any:
    """A copy that holds only JSON's types, cut where it is too deep."""
    if isinstance(value, Mapping):
        return (
            {str(key): plain(item, depth + 1) for key, item in value.items()} if depth < 8 else {}
        )
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value] if depth < 8 else []
    if isinstance(value, str):
        return value[:TEXT_CAP]
    return (
        value if isinstance(value, (bool, int, float)) or value is None else str(value)[:TEXT_CAP]
    )
