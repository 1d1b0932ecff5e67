"""A batch script before it is submitted: what is wrong in which line, and the corrected lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainprobe.model.diagnosis import Report
from trainprobe.report.extra import listed, rows_of
from trainprobe.report.lines import Line, Span, Style, span, wrapped
from trainprobe.report.phrases import clean

MOST_ROWS, MOST_LINES = 30, 120
_STATES: Mapping[str, tuple[str, Style]] = {
    "fail": ("wrong", "bad"),
    "warn": ("warning", "warn"),
    "unknown": ("unknown", "warn"),
}


def sbatch_lines(report: Report, width: int) -> list[Line]:
    """Return what is to be said of the script, worst first, and the diff; none for a report of
    anything else.
    """
    told = report.extra.get("sbatch")
    if not isinstance(told, Mapping):
        return []
    name = str(told.get("script") or "the script").rpartition("/")[2]
    lines: list[Line] = []
    for row in _rows(told)[:MOST_ROWS]:
        word, style = _STATES[str(row["state"])]
        at = (
            f"{name}:{row['line']}"
            if isinstance(row.get("line"), int) and row["line"] > 0
            else name
        )
        head = [
            span(clean(at), "strong"),
            span(word, style),
            span(clean(str(row.get("id") or "")), "faint"),
            span(clean(str(row.get("says") or ""))),
        ]
        lines += wrapped(head, width, rest="    ")
        if row.get("fix"):
            lines += wrapped([Span(clean(str(row["fix"])), "command")], width, first="    do: ")
    changes = [line for line in listed(told, "changes") if isinstance(line, str)]
    if changes:
        lines += [(span("corrected:", "strong"),)]
    for change in changes[:MOST_LINES]:
        kind: Style = (
            "good" if change.startswith("+") else "bad" if change.startswith("-") else "faint"
        )
        lines.append((Span(f"  {_as_it_stands(change)}", kind),))
    return lines


def _as_it_stands(change: str) -> str:
    """A line of a diff with its mark and its indentation, which `clean` takes away."""
    mark, text = change[:1], change[1:]
    return mark + " " * (len(text) - len(text.lstrip())) + clean(text)


def _rows(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = [row for row in rows_of(told, "rows") if row.get("state") in _STATES]
    return sorted(rows, key=lambda row: list(_STATES).index(str(row["state"])))
