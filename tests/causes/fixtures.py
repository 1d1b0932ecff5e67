"""Fixtures of causes: facts and a suspect group as YAML, with what the cause must make of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainprobe.facts import Facts
from trainprobe.model.codec import from_json
from trainprobe.waits import SuspectGroup

HERE = Path(__file__).parent
KINDS = ("fires", "silent", "undecided")
GROUP = {"cell": "user_script@3", "probe": "user_script", "ranks": [1], "how": "failed-first", "says": "", "mode": "crash", "world_size": 3}


@dataclass(frozen=True)
class Fixture:
    """`expect` says: families (those that must speak for it), ranks, eliminated (true when it must be ruled out), says (words of the summary)."""

    cause_id: str
    kind: str
    facts: Facts
    group: SuspectGroup
    expect: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.cause_id}/{self.kind}"


def load(cause_id: str, kind: str) -> Fixture:
    """Read one file. A fact without a cell lies in the group's; a group says only what differs from a crash of rank 1 of three."""
    data = yaml.safe_load((HERE / cause_id / f"{kind}.yaml").read_text(encoding="utf-8"))
    group = {**GROUP, **(data.get("group") or {})}
    rows = [_in_cell(row, group["cell"]) for row in data.get("facts") or []]
    return Fixture(cause_id, kind, Facts.from_rows(rows), from_json(SuspectGroup, group), data.get("expect") or {})


def everything() -> list[Fixture]:
    return [load(folder.name, kind) for folder in sorted(HERE.iterdir()) if folder.is_dir() and not folder.name.startswith("_") for kind in KINDS]


def _in_cell(row: Mapping[str, Any], cell: str) -> dict[str, Any]:
    if "looked" in row or "refused" in row:
        return {"cell": cell, **row}
    return {name: {"cell": cell, **fields} for name, fields in row.items()}
