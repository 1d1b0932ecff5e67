"""A report as one line for Nagios and what descends from it, with performance data, and the code
that a plugin ends with.

The form is that of the monitoring plugins' guidelines: `SERVICE STATE - text |
'label'=value[unit];warn;crit;min;max …`, codes 0 to 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainprobe.model.node_names import folded
from trainprobe.report.format import Format, Layout, of_reports
from trainprobe.report.outcomes import STATES, VERDICT, Outcome, left_out, outcomes, verdict_row

if TYPE_CHECKING:
    from trainprobe.model.diagnosis import Report

OK, WARNING, CRITICAL, UNKNOWN = 0, 1, 2, 3
NAMES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
_LONGEST_TEXT = 700
_MOST_NAMED = 4
_MOST_MEASURED = 30
_OMITTED = str.maketrans({"|": "/", "\n": " "})
_IN_LABEL = str.maketrans({"'": "_", "=": "_", "|": "_", "\n": "_"})


def exit_code(report: Report) -> int:
    """Return 0, 1, 2 or 3.

    0 is a pass without a warning. 1 is a pass with warnings, or trouble that slows a job and does
    not stop it. 2 is any other trouble, 3 is not determined.
    """
    rows = outcomes(report)
    verdict = verdict_row(report)
    if verdict.state == "unknown":
        return UNKNOWN
    if not verdict.spoils:
        warned = report.warnings or any(row.state in ("warn", "fail") for row in rows)
        return WARNING if warned else OK
    failed = [row for row in rows if row.spoils and row.kind == "check" and row.state == "fail"]
    mild = report.verdict == "slow" or (
        report.verdict == "at-risk"
        and bool(failed)
        and all(row.severity == "degraded" for row in failed)
    )
    return WARNING if mild else CRITICAL


def _line(report: Report, _: Layout) -> str:
    """Return the line, with a newline."""
    rows = outcomes(report)
    sure = report.conclusive or report.verdict == "undetermined"
    verdict = report.verdict if sure else f"{report.verdict}, not conclusive"
    text = f"TRAINPROBE {NAMES[exit_code(report)]} - {verdict}: {_says(report, rows)}"
    if len(text) > _LONGEST_TEXT:
        text = f"{text[: _LONGEST_TEXT - 1]}…"
    return f"{text.translate(_OMITTED)} | {' '.join(_measured(report, rows))}\n"


def _failure(sentence: str) -> tuple[str, int]:
    """A monitor takes silence for health, so that an error has a line of its own."""
    return f"TRAINPROBE UNKNOWN - {sentence.translate(_OMITTED)}\n", UNKNOWN


def _says(report: Report, rows: tuple[Outcome, ...]) -> str:
    verdict = rows[0]
    shown = [row for row in rows[1:] if row.spoils]
    shown = shown or [row for row in rows[1:] if row.state in ("warn", "fail")]
    named: dict[tuple[str, str], list[str]] = {}
    for row in shown:
        named.setdefault((row.id, row.says), []).append(row.host)
    parts = [
        f"{_at(check, hosts)}{f': {says}' if says else ''}"
        for (check, says), hosts in list(named.items())[:_MOST_NAMED]
    ]
    if len(named) > _MOST_NAMED:
        parts.append(f"and {len(named) - _MOST_NAMED} more")
    excluded = left_out(report)
    if excluded:
        parts.insert(0, f"leave out {folded(excluded)}")
    return "; ".join(part for part in (verdict.says, *parts) if part) or "nothing found"


def _at(check: str, hosts: list[str]) -> str:
    where = folded([host for host in hosts if host])
    return f"{check} on {where}" if where else check


def _measured(report: Report, rows: tuple[Outcome, ...]) -> list[str]:
    counted = [row for row in rows if row.kind in ("check", "rung")]
    data = [f"time={report.looked_s:.1f}s;;;0"]
    if counted:
        data += [f"{state}={sum(row.state == state for row in counted)};;;0" for state in STATES]
    many = len({row.host for row in counted}) > 1
    values = {
        f"{row.id}@{row.host}" if many and row.host else row.id: row.value
        for row in counted
        if row.value is not None and row.id != VERDICT
    }
    return data + [
        f"'{label.translate(_IN_LABEL)}'={value:.10g}"
        for label, value in list(values.items())[:_MOST_MEASURED]
    ]


FORMAT = Format(
    name="nagios",
    title="one line with performance data, and the exit codes of a monitoring plugin",
    ending=".nagios",
    renders=of_reports(_line),
    exit_code=exit_code,
    failure=_failure,
)
