"""Fixtures of causes: facts and a suspect group as YAML, with what the cause must make of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trainprobe.causes.scene import Scene
from trainprobe.facts import Facts
from trainprobe.facts.rows import facts_from_rows
from trainprobe.model.codec import from_json
from trainprobe.shipped import read_yaml
from trainprobe.waits import SuspectGroup

HERE = Path(__file__).parent
KINDS = ("fires", "silent", "undecided")
GROUP = {
    "cell": "user_script@3",
    "probe": "user_script",
    "ranks": [1],
    "how": "failed-first",
    "says": "",
    "mode": "crash",
    "world_size": 3,
}

# What a cause must not fire on, unless it has a file of its own: another exception altogether, and
# a rank that ended while its output was never seen.
DEFAULTS: Mapping[str, str] = {
    "silent": """
facts:
  - RankEnding: {rank: 1, how: exited, code: 1, order: 0}
  - RankException:
      rank: 1
      type: ValueError
      message: "not enough values to unpack (expected 2, got 1)"
      frames: [{name: main, file: /job/train.py, line: 52, text: "step()"}]
expect: {}
""",
    "undecided": """
facts:
  - RankEnding: {rank: 1, how: exited, code: 1, order: 0}
  - refused: output
    outcome: unavailable
    reason: the launcher wrote it to another host
""",
}


@dataclass(frozen=True)
class Fixture:
    """`expect` says: families (those that must speak for it), ranks, eliminated (true when it
    must be ruled out), says (words of the summary). `file` is its name without the ending, such as
    fires or fires_own_lock.
    """

    cause_id: str
    file: str
    facts: Facts
    group: SuspectGroup
    expect: Mapping[str, Any]

    @property
    def scene(self) -> Scene:
        return Scene(self.facts, self.group)

    @property
    def name(self) -> str:
        return f"{self.cause_id}/{self.file}"

    @property
    def kind(self) -> str:
        return self.file.partition("_")[0]


def load(cause_id: str, kind: str) -> Fixture:
    """Read one file, or the default of its kind. A fact without a cell lies in the group's; a
    group holds only what differs from a crash of rank 1 of three.
    """
    file = HERE / cause_id / f"{kind}.yaml"
    if kind in DEFAULTS and not file.is_file():
        data = read_yaml(DEFAULTS[kind])
    else:
        data = read_yaml(file.read_text(encoding="utf-8"))
    group = {**GROUP, **(data.get("group") or {})}
    rows = [_in_cell(row, group["cell"]) for row in data.get("facts") or []]
    return Fixture(
        cause_id,
        kind,
        facts_from_rows(rows),
        from_json(SuspectGroup, group),
        data.get("expect") or {},
    )


@cache
def everything() -> tuple[Fixture, ...]:
    return tuple(
        load(file.parent.name, kind)
        for file in sorted(HERE.glob("[!_]*/fires.yaml"))
        for kind in (*KINDS, *_further(file.parent))
    )


def _further(folder: Path) -> list[str]:
    """More fixtures of a kind, such as fires_own_lock.yaml."""
    return sorted(file.stem for kind in KINDS for file in folder.glob(f"{kind}_*.yaml"))


def _in_cell(row: Mapping[str, Any], cell: str) -> dict[str, Any]:
    if "looked" in row or "refused" in row:
        return {"cell": cell, **row}
    return {name: {"cell": cell, **fields} for name, fields in row.items()}
