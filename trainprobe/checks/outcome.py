"""What check programs reported, completed from the catalogue, and what it means for the node: the
rule of the administrators' slots.

It is the rule of the whole judgement (trainprobe/waits/readiness.py) for one node without causes.
Weighing causes needs four hundred modules, and a prolog runs before every job on every node. A test
compares the two rules.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trainprobe.checks.catalogue import SEVERITIES, STATES, spec_of

BAD = ("blocker", "degraded")
ENDED_BADLY = ("timed_out", "crashed", "unavailable")
_TEXT, _NAME, _ROWS = 2000, 200, 1000


@dataclass(frozen=True)
class CheckRow:
    """One check as the report has it. `value` is a number, a text or None."""

    id: str
    state: str
    severity: str
    who: str
    says: str
    fix: str
    threshold: str
    source: str
    value: Any

    @property
    def bad(self) -> bool:
        return self.state == "fail" and self.severity in BAD

    @property
    def doubtful(self) -> bool:
        """Not measured, and a failure of it would be a blocker."""
        return self.state == "unknown" and self.severity == "blocker"


@dataclass(frozen=True)
class ProgramResult:
    """What one check program reported: `outcome` and `reason` of its end, and its data (`checks`,
    `dropped`).
    """

    name: str
    outcome: str
    reason: str
    data: Mapping[str, Any]


def rows_of(programs: Iterable[ProgramResult]) -> tuple[CheckRow, ...]:
    """Return every reported check in the order of its stage, completed from the catalogue."""
    rows = [_row(row) for program in programs for row in _listed(program.data, "checks")]
    return tuple(sorted(rows, key=lambda row: (_stage(row.id), row.id)))


def doubts_of(programs: Sequence[ProgramResult], rows: Iterable[CheckRow]) -> tuple[str, ...]:
    """Return a sentence for each check that was not measured and whose failure would be a blocker:
    not measured is not healthy.
    """
    found = [f"{row.id}: {row.says or 'no reason was given'}" for row in rows if row.doubtful]
    hung = [program for program in programs if program.outcome in ENDED_BADLY]
    for program in hung:
        for row in _listed(program.data, "dropped"):
            spec = spec_of(row["id"])
            if spec is not None and spec.severity == "blocker":
                found.append(f"{row['id'][:_NAME]}: {str(row.get('reason') or '')[:_TEXT]}")
    if not any(_listed(program.data, "dropped") for program in programs):
        found += [f"{program.name}: {program.reason}" for program in hung]
    if not programs:
        found.append("no check has spoken")
    return tuple(dict.fromkeys(found))


def verdict_of(
    rows: Iterable[CheckRow], doubts: Sequence[str]
) -> Literal["healthy", "at-risk", "undetermined"]:
    """At risk where something keeps a job from starting well; undetermined where something that
    could was not measured.
    """
    return "at-risk" if any(row.bad for row in rows) else "undetermined" if doubts else "healthy"


def _row(row: Mapping[str, Any]) -> CheckRow:
    spec = spec_of(row["id"])

    def text(name: str, default: str) -> str:
        value = row.get(name)
        if value in (None, ""):
            return default
        return (value if isinstance(value, str) else json.dumps(value))[:_TEXT]

    severity = text("severity", spec.severity if spec else "degraded")
    state = row.get("state")
    value = row.get("value")
    return CheckRow(
        row["id"][:_NAME],
        state if isinstance(state, str) and state in STATES else "unknown",
        severity if severity in SEVERITIES else "degraded",
        "admin" if text("who", spec.who if spec else "") == "admin" else "user",
        text("says", ""),
        "" if state == "ok" else text("fix", spec.fix if spec else ""),
        text("threshold", spec.threshold if spec else ""),
        text("source", spec.source if spec else ""),
        value if _is_value(value) else None,
    )


def _is_value(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def _stage(check: str) -> int:
    spec = spec_of(check)
    return spec.stage if spec is not None else 99


def _listed(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    rows = data.get(name)
    rows = rows[:_ROWS] if isinstance(rows, (list, tuple)) else ()
    mappings = (row for row in rows if isinstance(row, Mapping))
    return [row for row in mappings if isinstance(row.get("id"), str) and row["id"]]
