"""Values from the plain data that a report carries beside its own fields (`Report.extra`). They may
come from a file that somebody changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def listed(row: Mapping[str, Any], name: str) -> list[Any]:
    """The list of this name, empty where there is none."""
    value = row.get(name)
    return list(value) if isinstance(value, (list, tuple)) else []


def rows_of(row: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The rows of the list of this name; anything else in it is left out."""
    return [item for item in listed(row, name) if isinstance(item, Mapping)]


def texts_of(row: Mapping[str, Any], name: str) -> list[str]:
    """The texts of the list of this name; anything else in it is left out."""
    return [item for item in listed(row, name) if isinstance(item, str)]


def text_of(row: Mapping[str, Any], name: str) -> str:
    """The text of this name, empty where there is none."""
    value = row.get(name)
    return value if isinstance(value, str) else ""
