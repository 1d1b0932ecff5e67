"""What was measured of the user's command in one cell of its grid: times, memory, descriptors,
tasks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.facts.probe_results import Measured
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

COMMAND = "user_script"
_CELL = re.compile(
    r"[^@]+@(?P<ranks>\d{1,12})(?:x(?P<rows>\d{1,18}))?(?:#(?P<knob>.*))?", re.DOTALL
)
_KNOWN = frozenset({"name", "value", "unit", "threshold", "source", "who"})


@dataclass(frozen=True)
class CellSize:
    """What the name of a cell says: `user_script@4x1000#workers=0` is 4 ranks, 1000 rows, and
    the knob `workers=0`.
    """

    ranks: int = 0
    rows: int | None = None
    knob: str = ""


def size_of(cell: str) -> CellSize:
    """Return the size in the name of a cell; zero ranks where the name has none."""
    match = _CELL.fullmatch(cell)
    if match is None:
        return CellSize()
    return CellSize(
        int(match["ranks"]), int(match["rows"]) if match["rows"] else None, match["knob"] or ""
    )


def parse_cell_measures(record: Evidence) -> list[Fact]:
    """Data: {measures: [{name, value, unit, …}]}. Labels that a row does not carry are those of
    its cell: ranks, rows, knob.
    """
    size = size_of(record.cell)
    of_cell: dict[str, Any] = {"ranks": size.ranks, "rows": size.rows, "knob": size.knob}

    def measured(row: Mapping[str, Any]) -> Measured:
        value = fields.number(row, "value")
        if value is None:
            raise fields.UnreadableError("a measure without a value")
        own = {str(key): fields.plain(item) for key, item in row.items() if key not in _KNOWN}
        labels = {key: item for key, item in {**of_cell, **own}.items() if item is not None}
        return Measured(
            evidence=(record.id,),
            cell=record.cell,
            rank=fields.whole(row, "rank"),
            probe=COMMAND,
            name=fields.text(row, "name"),
            value=value,
            unit=fields.text(row, "unit"),
            threshold=fields.number(row, "threshold"),
            source=fields.text(row, "source"),
            who=fields.text(row, "who"),
            labels=labels,
        )

    return list(fields.each(fields.items(record.data, "measures"), measured))
