"""Frozen dataclasses to JSON and back, keeping fields that this version does not know.

A record that a newer version wrote keeps its extra fields in `extra`, so that reading and writing a
case loses nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping as AbcMapping
from typing import Any, Dict, Type, TypeVar

from trainprobe.model.pids import HostPid

T = TypeVar("T")
_PLAIN = frozenset((str, int, float, bool, type(None)))


def to_json(value: Any) -> Any:
    """Return `value` as plain dicts, lists, strings, numbers, booleans and None.

    Fields whose metadata says `json: False` are left out; the content of `extra` is written beside
    the known fields.
    """
    kind = value.__class__
    if kind in _PLAIN:
        return value
    if kind is dict:  # most of it, by far
        return {
            key if key.__class__ is str else str(key): (
                item if item.__class__ in _PLAIN else to_json(item)
            )
            for key, item in value.items()
        }
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        written: Dict[str, Any] = {}
        for field in dataclasses.fields(value):
            if field.metadata.get("json", True) is False:
                continue
            if field.name == "extra":
                written.update(
                    {key: to_json(item) for key, item in typing.cast(Any, value).extra.items()}
                )
            else:
                written[field.name] = to_json(getattr(value, field.name))
        return written
    if isinstance(value, AbcMapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value) if isinstance(value, (set, frozenset)) else value
        return [
            item if item.__class__ in _PLAIN else to_json(item) for item in items
        ]  # rows of logs have a hundred thousand items
    if isinstance(value, HostPid):
        return value.pid
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def from_json(kind: Type[T], data: Any) -> T:
    """Build a `kind` from what `to_json` wrote.

    Raises ValueError with the path of the offending field when `data` does not have the shape of
    `kind`.
    """
    return typing.cast(T, _read(kind, data, kind.__name__))


@functools.cache
def _hints(kind: type) -> Dict[str, Any]:
    return typing.get_type_hints(kind)


@functools.cache
def _known(kind: Any) -> typing.FrozenSet[str]:
    return frozenset(field.name for field in dataclasses.fields(kind) if field.name != "extra")


def _read(kind: Any, data: Any, path: str) -> Any:
    if kind is Any:
        return data
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union or (hasattr(types, "UnionType") and origin is types.UnionType):
        return _read_union(args, data, path)
    if origin is typing.Literal:
        if data not in args:
            raise ValueError(f"{path}: {data!r} is none of {', '.join(map(str, args))}")
        return data
    if origin is tuple:
        if not isinstance(data, (list, tuple)):
            raise ValueError(f"{path}: expected a list, got {type(data).__name__}")
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_read(args[0], item, f"{path}[{i}]") for i, item in enumerate(data))
        if len(args) != len(data):
            raise ValueError(f"{path}: expected {len(args)} items, got {len(data)}")
        return tuple(
            _read(arg, item, f"{path}[{i}]") for i, (arg, item) in enumerate(zip(args, data))
        )
    if origin is not None and issubclass(origin, AbcMapping):
        if not isinstance(data, AbcMapping):
            raise ValueError(f"{path}: expected an object, got {type(data).__name__}")
        if args[1] is Any:
            return {str(key): item for key, item in data.items()}
        return {str(key): _read(args[1], item, f"{path}.{key}") for key, item in data.items()}
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(kind, data, path)
    return _read_scalar(kind, data, path)


def _read_union(args: Any, data: Any, path: str) -> Any:
    if data is None and type(None) in args:
        return None
    problem: Exception = ValueError(f"{path}: null is not allowed")
    for arg in args:
        if arg is type(None):
            continue
        try:
            return _read(arg, data, path)
        except ValueError as error:
            problem = error
    raise problem


def _read_scalar(kind: Any, data: Any, path: str) -> Any:
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise ValueError(f"{path}: expected {kind.__name__}, got {type(data).__name__}")
    return data


def _read_dataclass(kind: Any, data: Any, path: str) -> Any:
    if not isinstance(data, AbcMapping):
        raise ValueError(f"{path}: expected an object, got {type(data).__name__}")
    hints, known = _hints(kind), _known(kind)
    values = {
        name: item if item.__class__ is hints[name] else _read(hints[name], item, f"{path}.{name}")
        for name, item in data.items()
        if name in known
    }
    unknown = {str(key): item for key, item in data.items() if key not in known}
    if unknown and "extra" in hints:
        values["extra"] = unknown
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{path}: {error}") from error
