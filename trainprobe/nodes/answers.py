"""The answer of a node: foreign input, of which only the expected records are accepted.

A node may be broken, or not what it claims to be. So its records may not speak for another host,
another cell or the tool itself, whatever they contain.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainprobe.model.codec import from_json
from trainprobe.model.evidence import Evidence
from trainprobe.model.record_classes import RecordClass, read_class
from trainprobe.model.subjects import Subject
from trainprobe.redact import clean

SCHEMA = "trainprobe.node/1"
MOST_RECORDS = 20_000  # eight ranks with sixteen loader workers each send some 600
LATEST_S = 1e10  # of Unix time: the year 2286
ROLE_CHARACTERS = 40


@dataclass(frozen=True)
class Accept:
    """What a node may send: these kinds of evidence, for `cell` or a cell that matches `cells`. An
    answer without a record of the kind `tells` is empty.

    `kinds` never holds the tool's own records (node.look, reach, interrupted, resumed).
    """

    kinds: frozenset[str]
    cell: str
    tells: str
    cells: re.Pattern[str] | None = None

    def takes(self, record: Evidence) -> bool:
        """Whether the record is acceptable, with valid times."""
        return (
            self._takes_cell(record.cell)
            and record.kind in self.kinds
            and moment(record.began) is not None
            and math.isfinite(record.took_s)
        )

    def takes_all(self, records: RecordClass) -> bool:
        """Whether this is so for each record of a class, and none says otherwise for which host it
        speaks than where the site's name of the host can stand.
        """
        try:
            records.check()
        except ValueError:
            return False
        return (
            all(map(self._takes_cell, records.column("cell")))
            and self.kinds.issuperset(records.column("kind"))
            and all(moment(began) is not None for began in records.column("began"))
            and all(map(math.isfinite, records.column("took_s")))
            and ("job" not in records.column("kind") or _names_its_host(records))
        )

    def _takes_cell(self, cell: str) -> bool:
        return cell == self.cell if self.cells is None else bool(self.cells.fullmatch(cell))


@dataclass(frozen=True)
class Answer:
    """`classes` are records that were sent together, each with the places of its records among
    them all; `records` those that were sent alone.

    `begun`: our command has started there. `whole`: it has ended, with a `reason` where it could
    do nothing, and with `none` where there was nothing to do.

    `began` and `now` are the node's clock (Unix seconds) at the first and last line, if known.
    """

    records: tuple[Evidence, ...] = ()
    begun: bool = False
    whole: bool = False
    reason: str = ""
    none: bool = False
    began: float | None = None
    now: float | None = None
    host: str = ""
    flood: bool = False
    classes: tuple[tuple[RecordClass, tuple[int, ...]], ...] = ()

    @property
    def count(self) -> int:
        return len(self.records) + sum(records.count for records, _ in self.classes)

    def tells(self, kind: str) -> bool:
        """Whether there is a record of this kind."""
        return any(record.kind == kind for record in self.records) or any(
            kind in records.column("kind") for records, _ in self.classes
        )


def read_answer(answer: bytes, accept: Accept) -> Answer:
    """Parse an answer. Other lines, such as a banner, and unexpected records are skipped."""
    records: list[Evidence] = []
    classes: list[tuple[RecordClass, tuple[int, ...]]] = []
    count = 0
    found = Answer()
    flood = False
    for line in answer.splitlines():
        row = row_of(line)
        if row is None:
            continue
        if row.get("schema") == SCHEMA:
            if row.get("says") == "begin":
                found = replace(
                    found, begun=True, host=_text(row, "host"), began=moment(row.get("now"))
                )
            else:
                found = replace(
                    found,
                    whole=found.begun,
                    reason=_text(row, "reason"),
                    none=row.get("none") is True,
                    now=moment(row.get("now")),
                )
            continue
        if not found.begun:
            continue
        of_class = class_of(row)
        count += of_class[0].count if of_class is not None else 1
        if count > MOST_RECORDS:
            flood = True
        elif of_class is not None and accept.takes_all(of_class[0]):
            classes.append(of_class)
        else:
            rows = [row] if of_class is None else of_class[0].rows()
            taken = (record_of(one, accept) for one in rows)
            records += [record for record in taken if record is not None]
    return replace(found, records=tuple(records), classes=tuple(classes), flood=flood)


def is_whole(tail: bytes) -> bool:
    """Whether `tail` ends with the last line of an answer."""
    row = row_of(tail.rstrip().rpartition(b"\n")[2]) if tail.endswith(b"\n") else None
    return row is not None and row.get("schema") == SCHEMA and row.get("says") == "end"


def at_host(record: Evidence, host: str, skew_s: float) -> Evidence:
    """The record with the site's name of the host, and with times by our clock."""
    subject = record.subject
    role = clean(subject.role)[:ROLE_CHARACTERS]
    data = {**record.data, "host": host} if record.kind == "job" else dict(record.data)
    owner = Subject(
        subject.kind, host, subject.rank, subject.pid, subject.started_ticks, subject.gpu, role
    )
    return replace(record, subject=owner, began=record.began - skew_s, data=data)


def all_at_host(records: RecordClass, host: str, skew_s: float) -> RecordClass:
    """The same for the records of a class."""
    roles = [clean(role)[:ROLE_CHARACTERS] for role in records.column("subject", "role")]
    changes = {
        ("subject", "host"): [host],
        ("subject", "role"): roles,
        ("began",): [began - skew_s for began in records.column("began")],
    }
    if records.column("kind") == ["job"]:
        changes["data", "host"] = [host]
    return records.changed(changes)


def _names_its_host(records: RecordClass) -> bool:
    return records.column("kind") == ["job"] and ("data", "host") in records.form.paths


def row_of(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line; None for other lines, such as a login shell's banner."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def record_of(row: Mapping[str, Any], accept: Accept) -> Evidence | None:
    """The record in a row; None where there is none, or an unexpected one."""
    if not isinstance(row.get("kind"), str) or row["kind"] not in accept.kinds:
        return None
    try:
        record = from_json(Evidence, row)
        return record if accept.takes(record) else None
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None


def class_of(row: Mapping[str, Any]) -> tuple[RecordClass, tuple[int, ...]] | None:
    """The class in a row and the places of its records; None where there is none."""
    at = row.get("at")
    if not isinstance(at, list) or not all(place.__class__ is int for place in at):
        return None
    try:
        return read_class(row), tuple(at)
    except (ValueError, RecursionError):
        return None


def moment(value: Any) -> float | None:
    """A Unix time in seconds, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < LATEST_S else None  # also None for nan


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    return clean(value)[:500] if isinstance(value, str) else ""
