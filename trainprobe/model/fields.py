"""Fields of untrusted data: a missing one is the default, a wrong type makes it unreadable."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import sys
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.model.pids import HostPid

T = TypeVar("T")
F = TypeVar("F", bound=Fact)
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
    """Build one `T` per row, without single bad rows. Raises UnreadableError if all are bad."""
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


def build(kind: Callable[..., T], data: Mapping[str, Any], /, **known: Any) -> T:
    """Build a dataclass from the fields of the same names in `data`, each read by its type, and
    from `known`. Fields of other types than those above are only taken from `known`.
    """
    for name, read, _ in _readers(kind):
        if name not in known and data.get(name) is not None:
            known[name] = read(data, name)
    return kind(**known)


def table(kind: Callable[..., T], rows: Sequence[Any], /, **known: Any) -> list[T]:
    """The same for many rows, as `each` does. Where all have the same names, and under each of
    them values of one type, their columns are checked and not each value.
    """
    columns = _columns(kind, rows, known)
    if columns is None:
        return each(rows, lambda row: build(kind, row, **known))
    return list(map(kind, *columns))


def _columns(
    kind: Callable[..., T], rows: Sequence[Any], known: Mapping[str, Any]
) -> list[Iterable[Any]] | None:
    """The arguments of `kind` for all rows; None where these cannot be read together."""
    names = tuple(rows[0]) if rows and isinstance(rows[0], dict) else ()
    if not names or not all(row.__class__ is dict and tuple(row) == names for row in rows):
        return None
    given = dict(zip(names, zip(*(row.values() for row in rows), strict=True), strict=True))
    plain_types = {name: plain_type for name, _, plain_type in _readers(kind)}
    found: list[Iterable[Any]] = []
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        default = known.get(field.name, field.default)
        column = given.get(field.name) if field.name in plain_types else None
        if column is None or field.name in known:
            if default is dataclasses.MISSING:
                return None
            found.append(itertools.repeat(default, len(rows)))
            continue
        types, plain_type = set(map(type, column)), plain_types[field.name]
        empty = type(None) in types
        types -= {type(None), HostPid if plain_type is int else plain_type}
        if types - {plain_type} or not _in_bounds(column, plain_type, empty):
            return None
        if plain_type is str and not empty:
            column = map(sys.intern, column)  # each address is an end of two connections
        found.append([default if one is None else one for one in column] if empty else column)
    return found


def _in_bounds(column: Sequence[Any], plain_type: type | None, empty: bool) -> bool:
    values = [one for one in column if one is not None] if empty else column
    if not values or plain_type is bool:
        return True
    if plain_type is str:
        return max(map(len, values)) <= TEXT_CAP
    return all(-NUMBER_CAP < one < NUMBER_CAP for one in values)


def fact(
    kind: type[F], record: Evidence, data: Mapping[str, Any] | None = None, /, **known: Any
) -> F:
    """Build a fact from `data`, by default the whole of `record`, whose evidence and cell it
    gets. Its rank is `known` or None.
    """
    known = {"evidence": (record.id,), "cell": record.cell, "rank": None, **known}
    return build(kind, record.data if data is None else data, **known)


@functools.cache
def _readers(
    kind: Any,
) -> tuple[tuple[str, Callable[[Mapping[str, Any], str], Any], type | None], ...]:
    """Each field of these types with its reader and its plain type, if it has one."""
    readers: dict[Any, Callable[[Mapping[str, Any], str], Any]] = {
        str: text,
        int: whole,
        float: number,
        bool: flag,
        tuple[str, ...]: texts,
        tuple[int, ...]: wholes,
    }
    readers |= {typing.Tuple[str, ...]: texts, typing.Tuple[int, ...]: wholes}
    readers |= {typing.Optional[plain]: read for plain, read in readers.items()}
    hints = typing.get_type_hints(kind)
    plain_types: dict[Any, type] = {one: one for one in (str, int, float, bool)}
    plain_types |= {typing.Optional[one]: one for one in plain_types.values()}
    return tuple(
        (field.name, readers[hint], plain_types.get(hint))
        for field in dataclasses.fields(kind)
        if (hint := hints[field.name]) in readers
    )


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
