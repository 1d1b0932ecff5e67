"""Listings of processes that people paste beside a log: `ps --forest` and `ps -ef`.

Of several children of one process that run the same program, those that are `<defunct>` have ended,
and the others live on without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainprobe.facts.log_rows import Row, rows_of
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

_IN_TREE = re.compile(r"^[^\\]{0,200}?\b(?P<pid>\d{2,9})\b[^\\]{0,120}\\_ (?P<name>\S.{0,200})$")
_ROOT = re.compile(r"^[^\\]{0,120}?\b(?P<pid>\d{2,9})\s")
_WITH_PARENT = re.compile(
    r"^\S{1,40}\s{1,12}(?P<pid>\d{2,9})\s{1,12}(?P<parent>\d{1,9})\s{1,8}\d{1,3}\s{1,8}\S{1,12}"
    r"\s{1,8}\S{1,12}\s{1,8}[\d:-]{4,16}\s(?P<name>\S.{0,400})$"
)
_GONE = "<defunct>"
_PROGRAM = re.compile(r"[\[(]?([^\s\])]{1,100})")


@dataclass(frozen=True)
class ChildrenGone(Fact):
    """Of the children of `parent` that run `program`, `gone` have ended and `alive` have not: pids.
    `seen_at` is where the first of them is listed.
    """

    parent: int = 0
    program: str = ""
    gone: tuple[int, ...] = ()
    alive: tuple[int, ...] = ()
    seen_at: str = ""


@dataclass(frozen=True)
class _Listed:
    pid: int
    parent: int
    name: str
    row: Row


def parse_process_listings(record: Evidence) -> list[Fact]:
    """One fact per parent of which some children have ended and others live."""
    rows = rows_of(record)
    if not any(_GONE in row.text for row in rows):
        return []
    children: dict[tuple[int, str], list[_Listed]] = {}
    for one in (*_tree(rows), *_with_parents(rows)):
        program = _PROGRAM.match(one.name)
        if program is not None:
            name = program[1].rsplit("/", 1)[-1]
            children.setdefault((one.parent, name), []).append(one)
    found: list[Fact] = []
    for (parent, program_name), of in children.items():
        gone = tuple(one.pid for one in of if _GONE in one.name)
        alive = tuple(one.pid for one in of if _GONE not in one.name)
        if gone and alive:
            found.append(
                ChildrenGone(
                    (record.id,),
                    record.cell,
                    parent=parent,
                    program=program_name,
                    gone=gone,
                    alive=alive,
                    seen_at=of[0].row.seen_at,
                )
            )
    return found


def _tree(rows: Sequence[Row]) -> Iterator[_Listed]:
    above: list[tuple[int, int]] = []  # (column, pid) of the processes that the next may be below
    for row in rows:
        match = _IN_TREE.match(row.text)
        if match is None:
            root = _ROOT.match(row.text)
            above = [(-1, int(root["pid"]))] if root is not None else []
            continue
        column = match.start("name")
        above = [one for one in above if one[0] < column]
        if above:
            yield _Listed(int(match["pid"]), above[-1][1], match["name"], row)
        above.append((column, int(match["pid"])))


def _with_parents(rows: Sequence[Row]) -> Iterator[_Listed]:
    for row in rows:
        match = _WITH_PARENT.match(row.text)
        if match is not None and "\\_" not in row.text:
            yield _Listed(int(match["pid"]), int(match["parent"]), match["name"], row)
