"""The report of an administrators' slot: the checks of one node, without causes, so that it
costs a prolog little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from trainprobe import __version__
from trainprobe.checks.outcome import CheckRow, ProgramResult, doubts_of, rows_of, verdict_of
from trainprobe.model.diagnosis import REPORT_SCHEMA, Notice, Report, Stacks, Tool, Undecided, World
from trainprobe.report.outcomes import outcomes, verdict_row
from trainprobe.report.phrases import clean


def slot_report(
    programs: Sequence[ProgramResult],
    *,
    host: str,
    slot: str,
    budget: str,
    case: str = "",
    looked_s: float = 0.0,
) -> Report:
    """Return what the check programs of `host` told as a report, with the verdict that the whole
    judgement would give to it.
    """
    rows = rows_of(programs)
    doubts = doubts_of(programs, rows)
    verdict = verdict_of(rows, doubts)
    bad = [row for row in rows if row.bad]
    first = min(bad, key=lambda row: row.severity != "blocker", default=None)
    if first is not None:
        says = _and_more(first.says or f"{first.id} fails", len(bad) - 1, "fail too")
    elif doubts:
        says = _and_more(doubts[0], len(doubts) - 1, "could not be measured either")
    else:
        says = _passed(rows, host)
    return Report(
        schema=REPORT_SCHEMA,
        tool=Tool("trainprobe", __version__),
        command="ready",
        case=case,
        verdict=verdict,
        conclusive=not doubts,
        says=says,
        world=World(),
        suspects=(),
        causes=(),
        cascade=(),
        unexplained=(),
        ruled_out=(),
        undecided=tuple(Undecided("cannot-look", doubt) for doubt in doubts),
        ladder=(),
        stacks=Stacks(),
        looked_s=round(looked_s, 1),
        warnings=tuple(
            Notice(row.id, row.says, row.fix)
            for row in rows
            if row.state == "warn" or (row.state == "fail" and not row.bad)
        ),
        extra={
            "readiness": {
                **_readiness(rows, host, verdict),
                "dropped": _dropped(programs),
                "budget": budget,
                "slot": slot,
            }
        },
    )


def slot_text(report: Report) -> str:
    """Return the report as lines for a log: the verdict, then what fails, what could not be
    measured, and what is only worth a word.
    """
    verdict = verdict_row(report)
    lines = [f"{report.verdict.upper()}. {verdict.says}"]
    for row in outcomes(report)[1:]:
        if row.state in ("fail", "warn", "unknown"):
            about = ", ".join(word for word in (row.severity, row.who) if word)
            fix = f" [{row.fix}]" if row.fix and row.state != "unknown" else ""
            lines.append(f"{row.state:<7} {row.id} ({about}): {row.says}{fix}")
    return "".join(f"trainprobe: {clean(line)}\n" for line in lines)


def _passed(rows: Sequence[CheckRow], host: str) -> str:
    count = Counter("warn" if row.state == "fail" else row.state for row in rows)
    others = (
        ("warn", "with a warning"),
        ("unknown", "not measured, which forbids nothing"),
        ("skip", "that do not apply"),
    )
    more = "".join(f", {count[state]} {says}" for state, says in others if count[state])
    return f"{host} is ready: {count['ok']} checks passed{more}."


def _and_more(says: str, more: int, end: str) -> str:
    return f"{says.rstrip('.')}.{f' {more} more {end}.' if more else ''}"


def _readiness(rows: Sequence[CheckRow], host: str, verdict: str) -> dict[str, Any]:
    return {
        "ready": verdict == "healthy",
        "checks": [{**asdict(row), "hosts": [host]} for row in rows],
        "differences": [],
        "exclude": [],
    }


def _dropped(programs: Sequence[ProgramResult]) -> list[Any]:
    return [
        row
        for program in programs
        for row in program.data.get("dropped") or []
        if isinstance(row, dict)
    ]
