"""The answer of a node that was asked to look: foreign input, of which only what a look at a job can say is taken.

A node may be broken or not what it claims to be. So its records may not speak for another host, another cell or the tool itself, whatever they hold.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from typing import Any

from trainprobe.model.codec import from_json
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject
from trainprobe.redact import clean

SCHEMA = "trainprobe.node/1"
MOST_RECORDS = 20_000  # eight ranks with sixteen loader workers each send some 600
LATEST_S = 1e10  # of Unix time: the year 2286
ROLE_CHARACTERS = 40
# What looks at a job write; what the tool says of itself (reach, interrupted, resumed) is not for a node to say.
KINDS = frozenset(
    {
        "cgroup",
        "collectives",
        "deadlines",
        "error_file",
        "files",
        "flight_recorder",
        "gpus",
        "job",
        "kernel_log",
        "leftovers",
        "locks",
        "mounts",
        "output",
        "ports",
        "pressure",
        "process",
        "rank.ended",
        "ras",
        "sockets",
        "source",
        "stacks.native",
        "stacks.python",
        "worker_server",
    }
)
_CELL = re.compile(r"job(?:#attempt\d{1,6})?")


@dataclass(frozen=True)
class Answer:
    """`begun` says that our own look spoke, `whole` that it came to its end: with `reason` where it could not look, and `none` where no process of the job is there. `now` is the node's clock then, None if untold."""

    records: tuple[Evidence, ...] = ()
    begun: bool = False
    whole: bool = False
    reason: str = ""
    none: bool = False
    now: float | None = None
    host: str = ""
    flood: bool = False


def read_answer(answer: bytes) -> Answer:
    """Return what an answer says. Lines that are none of ours, such as a banner, and records that no look makes are passed over."""
    records: list[Evidence] = []
    found = Answer()
    flood = False
    for line in answer.splitlines():
        row = _row(line)
        if row is None:
            continue
        if row.get("schema") == SCHEMA:
            if row.get("says") == "begin":
                found = replace(found, begun=True, host=_text(row, "host"))
            else:
                found = replace(found, whole=found.begun, reason=_text(row, "reason"), none=row.get("none") is True, now=_moment(row.get("now")))
        elif found.begun and len(records) >= MOST_RECORDS:
            flood = True
        elif found.begun and (record := _record(row)) is not None:
            records.append(record)
    return replace(found, records=tuple(records), flood=flood)


def at_host(record: Evidence, host: str, skew_s: float) -> Evidence:
    """The record as the site would tell it: of the host by the site's name for it, and by our clock."""
    subject = record.subject
    role = clean(subject.role)[:ROLE_CHARACTERS]
    data = {**record.data, "host": host} if record.kind == "job" else dict(record.data)
    owner = Subject(subject.kind, host, subject.rank, subject.pid, subject.started_ticks, subject.gpu, role)
    return replace(record, subject=owner, began=record.began - skew_s, data=data)


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _record(row: dict[str, Any]) -> Evidence | None:
    if not isinstance(row.get("kind"), str) or row["kind"] not in KINDS:
        return None
    try:
        record = from_json(Evidence, row)
    except (ValueError, OverflowError, RecursionError):
        return None
    told = _moment(record.began) is not None and math.isfinite(record.took_s)
    return record if told and _CELL.fullmatch(record.cell) else None


def _moment(value: Any) -> float | None:
    told = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < LATEST_S  # also false for nan
    return float(value) if told else None


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    return clean(value)[:500] if isinstance(value, str) else ""
