"""What only the report on logs has: how far each rank came, and the failures in their order,
each echo folded.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from trainprobe.model.diagnosis import Report
from trainprobe.model.ranks import name_ranks
from trainprobe.report.extra import listed, rows_of
from trainprobe.report.lines import Line, span, wrapped

EVENTS_CAP = 40
RANKS_CAP = 16
_LABEL = "timeline  "


def log_lines(report: Report, width: int) -> list[Line]:
    """Return the timeline of each attempt, the last attempt first; nothing where the report is
    not about logs.
    """
    attempts = report.extra.get("timeline")
    most = report.extra.get("max_events")
    lines: list[Line] = []
    for attempt in attempts if isinstance(attempts, (list, tuple)) else ():
        if isinstance(attempt, Mapping):
            several = len(attempts) > 1 if isinstance(attempts, (list, tuple)) else False
            lines += _attempt(
                attempt,
                width,
                most if isinstance(most, int) and most > 0 else EVENTS_CAP,
                named=several,
            )
    return lines


def _attempt(attempt: Mapping[str, Any], width: int, most: int, *, named: bool) -> list[Line]:
    label = _LABEL
    lines: list[Line] = []
    blank = " " * len(_LABEL)
    if named:
        lines += wrapped(
            [span(_text(attempt, "attempt"), "strong"), span(_text(attempt, "verdict"))],
            width,
            first=label,
        )
        label = blank
    rows = rows_of(attempt, "ranks")
    for row in rows[:RANKS_CAP]:
        parts = [_text(row, "last_step"), _text(row, "last_collective"), _text(row, "exit")]
        said = " · ".join(part for part in parts if part)
        if said:
            who = (
                f"{'ranks' if set(_text(row, 'ranks')) & set(',-') else 'rank'}"
                f" {_text(row, 'ranks')}"
                if _text(row, "ranks")
                else "no rank named"
            )
            lines += wrapped([span(f"{who}:", "strong"), span(said)], width, first=label)
            label = blank
    if len(rows) > RANKS_CAP:
        lines += wrapped(
            [span(f"and {len(rows) - RANKS_CAP} more kinds of rank; all are in the JSON", "faint")],
            width,
            first=label,
        )
    events = rows_of(attempt, "events")
    for place, event in enumerate(events[:most], start=1):
        lines += wrapped(_event(event, place), width, first=label, rest=blank + "   ")
        label = blank
    if len(events) > most:
        lines += wrapped(
            [span(f"and {len(events) - most} more kinds of failure; all are in the JSON", "faint")],
            width,
            first=label,
        )
    return lines


def _event(event: Mapping[str, Any], place: int) -> list[Any]:
    ranks = [rank for rank in listed(event, "ranks") if isinstance(rank, int)]
    count = event.get("count")
    who = name_ranks(ranks) or "a process"
    more = f"({count} times)" if isinstance(count, int) and count > max(1, len(ranks)) else ""
    at = event.get("at")
    when = (
        f"{datetime.fromtimestamp(at, timezone.utc):%H:%M:%S}"
        if isinstance(at, (int, float)) and 0 < at < 1e11
        else ""
    )
    where = _text(event, "where")
    parts = [
        span(f"{place}."),
        span(when, "faint"),
        span(_text(event, "seen_at"), "faint"),
        span(who, "strong"),
        span(_text(event, "says")),
    ]
    parts += [
        span(f"at {where}" if where else ""),
        span(more, "faint"),
        span("(echo)" if event.get("echo") else "", "faint"),
    ]
    return [part for part in parts if part.text]


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""
