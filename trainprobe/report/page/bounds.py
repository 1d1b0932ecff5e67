"""A report whose longest texts are cut, so that one log line of a megabyte does not make a page of
many.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TypeVar, cast

from trainprobe.model.diagnosis import Report

LONGEST = 4000
T = TypeVar("T")


def bounded(report: Report) -> Report:
    """Return `report` with texts of `LONGEST` characters at most; each cut says how long it was."""
    return _bounded(report)


def _bounded(value: T) -> T:
    """The same object where nothing was cut: thousands of rows stay as they are."""
    kind = value.__class__
    if isinstance(value, str):
        return cast("T", _cut(value))
    if kind in (int, float, bool) or value is None:
        return value
    if isinstance(value, (tuple, list)):
        made = [_bounded(item) for item in value]
        if all(new is old for new, old in zip(made, value, strict=True)):
            return value
        return cast("T", tuple(made) if isinstance(value, tuple) else made)
    if isinstance(value, Mapping):
        return cast("T", {_cut(str(key)): _bounded(item) for key, item in value.items()})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {}
        for one in dataclasses.fields(value):
            old = getattr(value, one.name)
            if old.__class__ is not str or len(old) > LONGEST:
                new = _bounded(old)
                if new is not old:
                    changed[one.name] = new
        return cast("T", dataclasses.replace(value, **changed)) if changed else value
    return value


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]} … ({len(text):,} characters)"
