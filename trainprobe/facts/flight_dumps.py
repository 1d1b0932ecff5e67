"""Flight-recorder dumps that appeared. Reading what is in them comes later; that a rank wrote none is already a clue."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class FlightDump(Fact):
    """`path` is where the rank wrote it, `file` its copy in the case."""

    path: str = ""
    bytes: int = 0
    file: str = ""


def parse_flight_dump(record: Evidence) -> list[Fact]:
    data = record.data
    file = record.files[0] if record.files else ""
    return [FlightDump((record.id,), record.cell, record.subject.rank, fields.text(data, "path"), fields.whole(data, "bytes") or 0, file)]
