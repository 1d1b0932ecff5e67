"""What the check programs of each node found, what was left out, and what the nodes told for
comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainprobe.checks import SEVERITIES, spec_of
from trainprobe.facts.host_checks import STATES, HostCheck, shown
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

CELL = "checks"
MOST_ROWS = 1000


@dataclass(frozen=True)
class ReadyPlan(Fact):
    """What `ready` was asked: the budget, the slot, the nodes (by the site's names) and how they
    are reached (`here` for this one alone). `shell` is the one of them that was looked at from the
    caller's own shell, where the others were over ssh, "" for none. `unseen` says which nodes of
    the job could not be asked, and why. `scheduler` is the batch system of the job, also where ssh
    leads to its nodes, "" for none.

    `nproc` are ranks per node, 0 where nobody said. `undone` are rungs and rounds for which there
    was no time, each with the reason.
    """

    budget: str = "quick"
    slot: str = "step"
    by: str = "here"
    nodes: tuple[str, ...] = ()
    nproc: int = 0
    undone: tuple[tuple[str, str], ...] = ()
    shell: str = ""
    unseen: str = ""
    scheduler: str = ""


@dataclass(frozen=True)
class DroppedCheck(Fact):
    """A check that was not made on a host, and why. `hung` where its program was ended before it
    came to it: then it is unknown, and not left out by choice.
    """

    host: str = ""
    name: str = ""
    reason: str = ""
    hung: bool = False


@dataclass(frozen=True)
class CheckProgram(Fact):
    """One check program on one host: how it ended (`ok`, `partial`, `timed_out`, `crashed`,
    `unavailable`) and the check that was open then.
    """

    host: str = ""
    name: str = ""
    outcome: str = "ok"
    reason: str = ""
    open: str = ""


@dataclass(frozen=True)
class NodeValues(Fact):
    """The values by which one program of one host is compared: name to text, lists joined by
    blanks. Where the program did not end (`complete` false), a value that is not here was not
    measured; otherwise it is not set on that host.
    """

    host: str = ""
    program: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    complete: bool = True


@dataclass(frozen=True)
class NodeClock(Fact):
    """How far the clock of a node is from that of whoever asked it, in seconds; true to
    `within_s`, half the time that the exchange took.
    """

    host: str = ""
    offset_s: float = 0.0
    within_s: float = 0.0


def parse_ready(record: Evidence) -> list[Fact]:
    data = record.data
    undone = tuple(
        (fields.text(row, "id"), fields.text(row, "reason"))
        for row in fields.items(data, "undone")
        if isinstance(row, Mapping)
    )
    budget, slot, by = (fields.text(data, name) for name in ("budget", "slot", "by"))
    return [
        ReadyPlan(
            (record.id,),
            record.cell,
            None,
            budget,
            slot,
            by,
            fields.texts(data, "nodes"),
            fields.whole(data, "nproc") or 0,
            undone,
            fields.text(data, "shell"),
            fields.text(data, "unseen"),
            fields.text(data, "scheduler"),
        )
    ]


def parse_checks(record: Evidence) -> list[Fact]:
    """Also of a program that was ended or crashed: what it had said until then counts."""
    data, host = record.data, record.subject.host
    program = fields.text(data, "program", record.source)
    base: dict[str, Any] = {"evidence": (record.id,), "cell": record.cell, "host": host}
    found: list[Fact] = [
        CheckProgram(
            **base,
            name=program,
            outcome=record.outcome,
            reason=record.reason,
            open=fields.text(data, "open"),
        )
    ]
    found += [_check(row, program, base) for row in _rows(data, "checks")]
    hung = record.outcome in ("timed_out", "crashed", "unavailable")
    found += [
        DroppedCheck(
            **base, name=row["id"][:200], reason=fields.text(row, "reason", cap=2000), hung=hung
        )
        for row in _rows(data, "dropped")
    ]
    return found


def parse_values(record: Evidence) -> list[Fact]:
    values = {
        str(name)[:200]: _value(value)
        for name, value in list(fields.part(record.data, "values").items())[:MOST_ROWS]
    }
    host, complete = record.subject.host, record.outcome == "ok"
    return [NodeValues((record.id,), record.cell, None, host, record.source, values, complete)]


def parse_node_clock(record: Evidence) -> list[Fact]:
    offset, within = (
        fields.number(record.data, "clock_offset_s"),
        fields.number(record.data, "clock_within_s"),
    )
    return (
        []
        if offset is None or within is None
        else [NodeClock((record.id,), record.cell, None, record.subject.host, offset, abs(within))]
    )


def _rows(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return [
        row
        for row in fields.items(data, name)[:MOST_ROWS]
        if isinstance(row, Mapping) and isinstance(row.get("id"), str) and row["id"]
    ]


def _check(row: Mapping[str, Any], program: str, base: Mapping[str, Any]) -> HostCheck:
    spec = spec_of(row["id"])

    def told(name: str, known: str) -> str:
        value = row.get(name)
        return shown(value)[:2000] if value not in (None, "") else known

    severity = told("severity", spec.severity if spec else "degraded")
    state = row.get("state")
    return HostCheck(
        **base,
        name=row["id"][:200],
        status=state if isinstance(state, str) and state in STATES else "unknown",
        value=shown(row.get("value")),
        says=told("says", ""),
        fix=told("fix", spec.fix if spec else ""),
        probe=program,
        severity=severity if severity in SEVERITIES else "degraded",
        who="admin" if told("who", spec.who if spec else "") == "admin" else "user",
        source=told("source", spec.source if spec else ""),
        threshold=told("threshold", spec.threshold if spec else ""),
    )


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(shown(item) for item in value)[:4000]
    return shown(value)
