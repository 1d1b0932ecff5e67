"""The failures as the logs tell of them, in their order, the first one marked and echoes pale; and
how far each rank came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from trainprobe.model.diagnosis import Report
from trainprobe.model.ranks import name_ranks
from trainprobe.report.extra import listed, rows_of, text_of, texts_of
from trainprobe.report.page.markup import Markup, element
from trainprobe.report.phrases import duration

EVENTS_CAP, RANKS_CAP, ATTEMPTS_CAP = 60, 40, 6
WIDTH, LANE, LEFT = 760, 18, 120
LANES_CAP = 16


def log_section(report: Report) -> Markup | None:
    """Return the timeline of each attempt; None where no log was read."""
    attempts = rows_of(report.extra, "timeline")
    shown = [
        found
        for attempt in attempts[:ATTEMPTS_CAP]
        if (found := _attempt(attempt, named=len(attempts) > 1)) is not None
    ]
    if not shown:
        return None
    return element(
        "section",
        element("h2", "Logs", element("small", "first failure first"), id="logs-title"),
        *shown,
        id="logs",
        aria_labelledby="logs-title",
    )


def _attempt(attempt: Mapping[str, Any], *, named: bool) -> Markup | None:
    events = rows_of(attempt, "events")
    ranks = rows_of(attempt, "ranks")
    if not events and not ranks:
        return None
    times = [at for event in events if (at := _at(event)) is not None]
    start = min(times, default=None)
    first = next((place for place, event in enumerate(events) if not event.get("echo")), 0)
    files = texts_of(attempt, "files")
    return element(
        "div",
        element("h3", f"{_name(attempt)}: {text_of(attempt, 'verdict')}") if named else None,
        element("p", ", ".join(files[:6]) + (" …" if len(files) > 6 else ""), class_="faint files")
        if files
        else None,
        _strip(events[:EVENTS_CAP], first),
        element(
            "ol",
            *(
                _event(event, start, is_first=place == first)
                for place, event in enumerate(events[:EVENTS_CAP])
            ),
            class_="events",
        )
        if events
        else None,
        element("p", f"{len(events) - EVENTS_CAP} more are in the JSON.", class_="faint")
        if len(events) > EVENTS_CAP
        else None,
        _how_far(ranks),
        class_="attempt",
    )


def _name(attempt: Mapping[str, Any]) -> str:
    name = text_of(attempt, "attempt")
    number = name.removeprefix("attempt-")
    return f"Attempt {number}" if number != name else "The job" if name == "job" else name


def _at(event: Mapping[str, Any]) -> float | None:
    at = event.get("at")
    known = isinstance(at, (int, float)) and not isinstance(at, bool) and 0 < at < 1e11
    return float(at) if known and isinstance(at, (int, float)) else None


def _ranks(event: Mapping[str, Any]) -> list[int]:
    return [rank for rank in listed(event, "ranks") if isinstance(rank, int)]


def _event(event: Mapping[str, Any], start: float | None, *, is_first: bool) -> Markup:
    at, count, echo = _at(event), event.get("count"), bool(event.get("echo"))
    when = ""
    if at is not None:
        when = f"{datetime.fromtimestamp(at, timezone.utc):%H:%M:%S}"
        if start is not None and at - start >= 0.05:
            when += f" (+{duration(at - start)})"
    ranks = _ranks(event)
    repeated = isinstance(count, int) and count > max(1, len(ranks))
    return element(
        "li",
        element("span", "▲ first failure", class_="mark") if is_first else None,
        element("b", name_ranks(ranks, "a process")),
        element("span", when, class_="faint") if when else None,
        element("code", text_of(event, "seen_at"), class_="seen") if event.get("seen_at") else None,
        element("span", text_of(event, "says"), class_="told-text"),
        element("code", f"at {text_of(event, 'where')}") if text_of(event, "where") else None,
        element("small", f"{count} times") if repeated else None,
        element("small", "echo of another's end") if echo else None,
        class_="first" if is_first else "echo" if echo else None,
    )


def _strip(events: Sequence[Mapping[str, Any]], first: int) -> Markup | None:
    """A lane for each set of ranks and a tick for each failure; None where times do not tell."""
    timed = [(place, at, _ranks(event)) for place, event in enumerate(events) if (at := _at(event))]
    start, end = (min(at for _, at, _ in timed), max(at for _, at, _ in timed)) if timed else (0, 0)
    if len(timed) < 2 or end - start < 0.5:
        return None
    lanes = list(dict.fromkeys(name_ranks(ranks, "a process") for _, _, ranks in timed))[:LANES_CAP]
    parts = []
    for row, lane in enumerate(lanes):
        y = 10 + row * LANE
        parts += [
            element("text", lane[:18], x=LEFT - 8, y=y + 4, text_anchor="end"),
            element("path", d=f"M{LEFT} {y} H{WIDTH - 10}", class_="grid-line"),
        ]
    for place, at, ranks in timed:
        lane = name_ranks(ranks, "a process")
        if lane in lanes:
            x = LEFT + (WIDTH - LEFT - 20) * (at - start) / (end - start)
            y = 10 + lanes.index(lane) * LANE
            shape = (
                element("path", d=f"M{x:.1f} {y - 7} l7 12 h-14 z", class_="first")
                if place == first
                else element("circle", cx=f"{x:.1f}", cy=y, r="4", class_="event")
            )
            parts.append(shape)
    height = 14 + len(lanes) * LANE
    parts += [
        element("text", "0 s", x=LEFT, y=height + 8),
        element("text", f"+{duration(end - start)}", x=WIDTH - 10, y=height + 8, text_anchor="end"),
    ]
    return element(
        "svg",
        element("title", "When each failure was printed"),
        *parts,
        viewbox=f"0 0 {WIDTH} {height + 14}",
        role="img",
        class_="strip",
    )


def _how_far(rows: Sequence[Mapping[str, Any]]) -> Markup | None:
    if not rows:
        return None
    names = ("last_step", "last_collective", "first_error", "exit")
    body = [
        element(
            "tr",
            element("th", element("span", text_of(row, "ranks") or "-", class_="set"), scope="row"),
            *(element("td", text_of(row, name) or "-") for name in names),
        )
        for row in rows[:RANKS_CAP]
    ]
    heads = ("Ranks", "Last step", "Last collective", "First error", "End")
    return element(
        "details",
        element("summary", "How far each rank came"),
        element(
            "table",
            element("thead", element("tr", *(element("th", name, scope="col") for name in heads))),
            element("tbody", *body),
        ),
    )
