"""Values out of the plain data that a report carries beside its own fields (`Report.extra`),
which may come out of a file that somebody changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def listed(row: Mapping[str, Any], name: str) -> list[Any]:
    """The list of this name, empty where there is none."""
    value = row.get(name)
    return list(value) if isinstance(value, (list, tuple)) else []


def rows_of(row: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The rows of the list of this name; what is no row is left out."""
    return [one for one in listed(row, name) if isinstance(one, Mapping)]
