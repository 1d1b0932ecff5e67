"""The section of a report on logs: how far each rank came, and the failures in order, each with its
echoes folded.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from trainprobe.model.diagnosis import Report
from trainprobe.model.ranks import name_ranks
from trainprobe.report.extra import listed, rows_of, text_of
from trainprobe.report.lines import Block, Line, Span, span

EVENTS_CAP = 40
RANKS_CAP = 16


def log_lines(report: Report, width: int) -> list[Line]:
    """Return the timeline of each attempt, the last attempt first; nothing where the report is
    not about logs.
    """
    attempts = rows_of(report.extra, "timeline")
    cap = report.extra.get("max_events")
    most = cap if isinstance(cap, int) and cap > 0 else EVENTS_CAP
    named = len(attempts) > 1
    return [line for attempt in attempts for line in _attempt(attempt, width, most, named=named)]


def _attempt(attempt: Mapping[str, Any], width: int, most: int, *, named: bool) -> list[Line]:
    block = Block("timeline  ", width)
    if named:
        block.add(span(text_of(attempt, "attempt"), "strong"), span(text_of(attempt, "verdict")))
    rows = rows_of(attempt, "ranks")
    for row in rows[:RANKS_CAP]:
        parts = [text_of(row, name) for name in ("last_step", "last_collective", "exit")]
        ranks, progress = text_of(row, "ranks"), " · ".join(filter(None, parts))
        if progress:
            noun = "ranks" if set(ranks) & set(",-") else "rank"
            who = f"{noun} {ranks}" if ranks else "no rank named"
            block.add(span(f"{who}:", "strong"), span(progress))
    block.add_rest(len(rows) - RANKS_CAP, "more kinds of rank; all are in the JSON")
    events = rows_of(attempt, "events")
    for place, event in enumerate(events[:most], start=1):
        block.add(*_event(event, place), rest=3)
    block.add_rest(len(events) - most, "more kinds of failure; all are in the JSON")
    return block.lines


def _event(event: Mapping[str, Any], place: int) -> list[Span]:
    ranks = [rank for rank in listed(event, "ranks") if isinstance(rank, int)]
    count, at, where = event.get("count"), event.get("at"), text_of(event, "where")
    when = ""
    if isinstance(at, (int, float)) and 0 < at < 1e11:
        when = f"{datetime.fromtimestamp(at, timezone.utc):%H:%M:%S}"
    repeated = isinstance(count, int) and count > max(1, len(ranks))
    parts = [
        span(f"{place}."),
        span(when, "faint"),
        span(text_of(event, "seen_at"), "faint"),
        span(name_ranks(ranks, "a process"), "strong"),
        span(text_of(event, "says")),
        span(f"at {where}" if where else ""),
        span(f"({count} times)" if repeated else "", "faint"),
        span("(echo)" if event.get("echo") else "", "faint"),
    ]
    return [part for part in parts if part.text]
