"""The groups of a job that are parts of one world, such as steps of SLURM with one rank each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainprobe.model import fields
from trainprobe.model.evidence import Evidence


@dataclass(frozen=True)
class _Part:
    cell: str
    place: tuple[str, str, int]
    ranks: frozenset[int]


def in_one_cell(records: Sequence[Evidence]) -> list[Evidence]:
    """Return the records with groups in one cell that meet at one address, expect one size of the
    world and have different ranks of it.
    """
    first: dict[tuple[str, str, int], tuple[str, set[int]]] = {}
    moved: dict[str, str] = {}
    for part in _parts(records):
        cell, ranks = first.setdefault(part.place, (part.cell, set()))
        if part.cell == cell or ranks.isdisjoint(part.ranks):
            ranks |= part.ranks
            if part.cell != cell:
                moved[part.cell] = cell
    return [_moved(record, moved) for record in records] if moved else list(records)


def _moved(record: Evidence, moved: Mapping[str, str]) -> Evidence:
    cell, attempt, number = record.cell.partition("#attempt")
    return replace(record, cell=f"{moved[cell]}{attempt}{number}") if cell in moved else record


def _parts(records: Sequence[Evidence]) -> list[_Part]:
    """One for each cell, with what all of its hosts saw; none of a world that it fills alone."""
    found: dict[str, _Part] = {}
    for record in records:
        if record.kind != "job" or not record.cell:
            continue
        try:
            place = _place(record.data)
            ranks = frozenset(
                rank
                for row in fields.items(record.data, "ranks")
                if isinstance(row, Mapping) and (rank := fields.whole(row, "rank")) is not None
            )
        except fields.UnreadableError:  # its parser says so
            continue
        if place is None:
            continue
        known = found.get(record.cell)
        if known is None or known.place == place:
            found[record.cell] = _Part(
                record.cell, place, ranks | (known.ranks if known is not None else frozenset())
            )
    return [part for part in found.values() if 0 < len(part.ranks) < part.place[2]]


def _place(data: Mapping[str, Any]) -> tuple[str, str, int] | None:
    """Address, port and size that its ranks were told; None where they were told several."""
    world = fields.whole(data, "world_size")
    places = {
        (str(values.get("MASTER_ADDR", "")), str(values.get("MASTER_PORT", "")))
        for who, values in fields.part(data, "environment").items()
        if who != "job" and isinstance(values, Mapping)
    }
    if world is None or len(places) != 1:
        return None
    address, port = places.pop()
    return (address, port, world) if address and port else None
