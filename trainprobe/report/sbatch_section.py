"""A batch script before it is submitted: what is wrong in which line, and the corrected lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainprobe.model.diagnosis import Report
from trainprobe.report.extra import rows_of, texts_of
from trainprobe.report.lines import Line, Span, Style, span, wrapped
from trainprobe.report.phrases import clean

MOST_ROWS, MOST_LINES = 30, 120
_STATES: Mapping[str, tuple[str, Style]] = {
    "fail": ("wrong", "bad"),
    "likely": ("likely wrong", "bad"),
    "warn": ("warning", "warn"),
    "unknown": ("unknown", "warn"),
}


def sbatch_lines(report: Report, width: int) -> list[Line]:
    """Return the findings on the script, worst first, and the diff; none for another report."""
    plan = report.extra.get("sbatch")
    if not isinstance(plan, Mapping):
        return []
    name = str(plan.get("script") or "the script").rpartition("/")[2]
    lines: list[Line] = []
    for row in _rows(plan)[:MOST_ROWS]:
        word, style = _STATES[str(row["state"])]
        line = row.get("line")
        head = [
            span(f"{name}:{line}" if isinstance(line, int) and line > 0 else name, "strong"),
            span(word, style),
            span(str(row.get("id") or ""), "faint"),
            span(str(row.get("says") or "")),
        ]
        lines += wrapped(head, width, rest="    ")
        if row.get("fix"):
            lines += wrapped([span(str(row["fix"]), "command")], width, first="    do: ")
    changes = texts_of(plan, "changes")
    if changes:
        lines += [(span("corrected:", "strong"),)]
    kinds: dict[str, Style] = {"+": "good", "-": "bad"}
    for change in changes[:MOST_LINES]:
        lines.append((Span(f"  {_with_indent(change)}", kinds.get(change[:1], "faint")),))
    return lines


def _with_indent(change: str) -> str:
    """A cleaned line of a diff with its mark and its indentation, which `clean` would remove."""
    mark, text = change[:1], change[1:]
    return mark + " " * (len(text) - len(text.lstrip())) + clean(text)


def _rows(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = [row for row in rows_of(plan, "rows") if row.get("state") in _STATES]
    return sorted(rows, key=lambda row: list(_STATES).index(str(row["state"])))
