"""Flight-recorder dumps that appeared. Reading what is in them comes later; that a rank wrote none is already a clue."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class FlightDump(Fact):
    path: str = ""
    bytes: int = 0
    file: str = ""
