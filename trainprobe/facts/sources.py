"""The source around the lines that stacks and tracebacks name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class Block:
    """A statement that encloses a line. `kind` is if, for, while, with, try or def; `branch` is body, orelse or handler."""

    kind: str = ""
    line: int = 0
    text: str = ""
    branch: str = "body"


@dataclass(frozen=True)
class SourceSite(Fact):
    """One line and what encloses it, innermost last."""

    file: str = ""
    line: int = 0
    function: str = ""
    text: str = ""
    blocks: tuple[Block, ...] = ()


def parse_source(record: Evidence) -> list[Fact]:
    file = fields.text(record.data, "file")

    def site(row: Mapping[str, Any]) -> Fact:
        blocks = tuple(fields.each(fields.items(row, "blocks"), _block))
        line = fields.whole(row, "line")
        if line is None:
            raise fields.UnreadableError("a site without a line")
        where = fields.text(row, "file") or file
        return SourceSite((record.id,), record.cell, record.subject.rank, where, line, fields.text(row, "function"), fields.text(row, "text"), blocks)

    return fields.each(fields.items(record.data, "sites"), site)


def _block(row: Mapping[str, Any]) -> Block:
    return Block(fields.text(row, "kind"), fields.whole(row, "line") or 0, fields.text(row, "text"), fields.text(row, "branch") or "body")
