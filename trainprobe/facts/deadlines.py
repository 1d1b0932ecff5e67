"""When evidence expires, and what would be lost: time limits and the last checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class Deadline(Fact):
    """A time limit. `kind` is group or scheduler; `seconds` the length of a group's timeout, `ends_at` the Unix time at which a scheduler ends the job."""

    kind: str = "group"
    seconds: float | None = None
    ends_at: float | None = None
    source: str = ""


@dataclass(frozen=True)
class Checkpoint(Fact):
    """A checkpoint file: size in bytes and the Unix time of its last change."""

    path: str = ""
    bytes: int = 0
    modified_at: float | None = None


def parse_deadlines(record: Evidence) -> list[Fact]:
    """Data: {group_timeouts: [{rank, seconds, source}], scheduler: {ends_at, source}|null, checkpoints: [{path, bytes, modified_at}]}."""
    data = record.data

    def group(row: Mapping[str, Any]) -> Fact:
        seconds, source = fields.number(row, "seconds"), fields.text(row, "source")
        return Deadline(evidence=(record.id,), cell=record.cell, rank=fields.whole(row, "rank"), kind="group", seconds=seconds, source=source)

    def checkpoint(row: Mapping[str, Any]) -> Fact:
        size, at = fields.whole(row, "bytes") or 0, fields.number(row, "modified_at")
        return Checkpoint(evidence=(record.id,), cell=record.cell, path=fields.text(row, "path"), bytes=size, modified_at=at)

    found: list[Fact] = fields.each(fields.items(data, "group_timeouts"), group)
    end = fields.number(fields.part(data, "scheduler"), "ends_at")
    if end is not None:
        source = fields.text(fields.part(data, "scheduler"), "source")
        found.append(Deadline(evidence=(record.id,), cell=record.cell, kind="scheduler", ends_at=end, source=source))
    return found + fields.each(fields.items(data, "checkpoints"), checkpoint)
