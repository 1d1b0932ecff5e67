"""The source around the lines that stacks and tracebacks name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

TEXT_CAP = 400  # of one statement; rules search in it, and not all of them in linear time


@dataclass(frozen=True)
class Block:
    """A statement that encloses a line. `kind` is if, for, while, with, try or def; `branch` is
    body, orelse or handler.
    """

    kind: str = ""
    line: int = 0
    text: str = ""
    branch: str = "body"


@dataclass(frozen=True)
class Skip:
    """A branch above a line that leaves a pass of the loop at line `loop` before it comes there.
    `how` is continue, break or return.
    """

    line: int = 0
    text: str = ""
    how: str = ""
    loop: int = 0
    branch: str = "body"


@dataclass(frozen=True)
class SourceSite(Fact):
    """One line and what encloses it, innermost last; `skips` is empty in cases that were
    recorded before it was read.
    """

    file: str = ""
    line: int = 0
    function: str = ""
    text: str = ""
    blocks: tuple[Block, ...] = ()
    skips: tuple[Skip, ...] = ()


def parse_source(record: Evidence) -> list[Fact]:
    file = fields.text(record.data, "file")

    def site(row: Mapping[str, Any]) -> Fact:
        blocks = tuple(fields.each(fields.items(row, "blocks"), _block))
        line = fields.whole(row, "line")
        if line is None:
            raise fields.UnreadableError("a site without a line")
        where = fields.text(row, "file") or file
        skips = tuple(fields.each(fields.items(row, "skips"), _skip))
        return SourceSite(
            (record.id,),
            record.cell,
            record.subject.rank,
            where,
            line,
            fields.text(row, "function"),
            fields.text(row, "text", cap=TEXT_CAP),
            blocks,
            skips,
        )

    return fields.each(fields.items(record.data, "sites"), site)


def _block(row: Mapping[str, Any]) -> Block:
    return Block(
        fields.text(row, "kind"),
        fields.whole(row, "line") or 0,
        fields.text(row, "text", cap=TEXT_CAP),
        fields.text(row, "branch") or "body",
    )


def _skip(row: Mapping[str, Any]) -> Skip:
    line, loop = fields.whole(row, "line") or 0, fields.whole(row, "loop") or 0
    return Skip(
        line,
        fields.text(row, "text", cap=TEXT_CAP),
        fields.text(row, "how"),
        loop,
        fields.text(row, "branch") or "body",
    )
