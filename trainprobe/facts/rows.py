"""Facts written down as plain data, for fixtures of causes and for tests."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from trainprobe.collect.collector import every_collector
from trainprobe.facts.table import Facts, Look, Refusal
from trainprobe.model.codec import from_json
from trainprobe.model.facts import Fact
from trainprobe.model.subjects import Subject

LOOK_FIELDS = {"looked", "cell", "rank", "evidence"}
REFUSAL_FIELDS = {"refused", "outcome", "reason", "subject", "cell", "evidence"}


def facts_from_rows(rows: Iterable[Mapping[str, Any]]) -> Facts:
    """Build facts from plain data: `{"RankEnding": {"rank": 1, "how": "exited", "code": 0}}`,
    `{"looked": "stacks.python", "cell": …}`,
    `{"refused": "kernel_log", "outcome": "denied", "reason": …}`. Raises ValueError for an
    unknown fact or field.
    """
    facts: list[Fact] = []
    looked: list[Look] = []
    refused: list[Refusal] = []
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ValueError(f"row {place}: expected an object, got {type(row).__name__}")
        if "looked" in row:
            _only(row, LOOK_FIELDS, f"row {place}")
            looked.append(
                Look(
                    str(row["looked"]),
                    str(row.get("cell", "")),
                    row.get("rank"),
                    str(row.get("evidence", "")),
                )
            )
        elif "refused" in row:
            _only(row, REFUSAL_FIELDS, f"row {place}")
            subject = from_json(Subject, row.get("subject", {}))
            words = [str(row.get(name, "")) for name in ("outcome", "reason", "cell", "evidence")]
            refused.append(
                Refusal(
                    str(row["refused"]),
                    words[0] or "unavailable",
                    words[1],
                    subject,
                    words[2],
                    words[3],
                )
            )
        else:
            facts.extend(_fact(name, fields, place) for name, fields in row.items())
    return Facts(facts, looked=looked, refused=refused)


@functools.cache
def fact_types() -> dict[str, type[Fact]]:
    """Every type of fact, by its name: those that `trainprobe.facts` exports, and those of the
    collectors.
    """
    from trainprobe import facts

    found = {kind.__name__: kind for collector in every_collector() for kind in collector.facts}
    for name in facts.__all__:
        kind = getattr(facts, name)
        if isinstance(kind, type) and issubclass(kind, Fact) and kind is not Fact:
            found[name] = kind
    return found


def _fact(name: str, fields: Any, place: int) -> Fact:
    known = fact_types()
    kind = known.get(name)
    if kind is None:
        raise ValueError(f"row {place}: {name!r} is no fact; there are {', '.join(sorted(known))}")
    if not isinstance(fields, Mapping):
        raise ValueError(
            f"row {place}: {name} expects an object of fields, got {type(fields).__name__}"
        )
    _check_names(kind, fields, f"row {place}: {name}")
    return from_json(kind, fields)


def _only(row: Mapping[str, Any], known: set[str], path: str) -> None:
    unknown = set(row) - known
    if unknown:
        raise ValueError(f"{path}: unknown field {', '.join(sorted(map(str, unknown)))}")


def _check_names(kind: type, data: Any, path: str) -> None:
    """The codec keeps or drops fields that it does not know; in a fixture such a field is a slip
    of the pen.
    """
    if not isinstance(data, Mapping):
        return
    hints = typing.get_type_hints(kind)
    known = {field.name for field in dataclasses.fields(kind)}
    _only(data, known, path)
    for name, value in data.items():
        inner = _inner_dataclass(hints[name])
        if inner is None:
            continue
        for item in value if isinstance(value, (list, tuple)) else [value]:
            _check_names(inner, item, f"{path}.{name}")


def _inner_dataclass(hint: Any) -> type | None:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint
    if typing.get_origin(hint) in (tuple, typing.Union, types.UnionType):
        return next(
            (found for found in map(_inner_dataclass, typing.get_args(hint)) if found is not None),
            None,
        )
    return None
