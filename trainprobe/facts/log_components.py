"""The last lines of a log that tell of a failure or a wait in words that signatures/ does not
know, each with the component that it is of.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from trainprobe.facts.log_events import LINE_CHARACTERS, LogEvent
from trainprobe.facts.log_rows import Row, rows_of
from trainprobe.logtext.components import (
    By,
    EventKind,
    Reading,
    components,
    event_kind,
    read_component,
)
from trainprobe.logtext.steps import read_step
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

COMPONENT_LINE = "component-line"
LAST_LINES = 40
MOST = 4  # lines of one file that are read; reading one takes a millisecond
SEEN = 400
_EXCEPTION = re.compile(r"\s{0,8}(?:\w{1,60}\.){0,8}\w{1,60}(?:Error|Exception|Interrupt)(?::|$)")
# What a logger itself calls harmless, and glog's `[W…]` and `I0203`. NCCL warns of what ends it.
_MILD = re.compile(
    r"(?<!NCCL )\bWARN(?:ING)?\b|\b(?:INFO|DEBUG)\b|\w*Warning:|^\[?[WI]\d{0,4}[ :]|\[[WI] ?\w"
)
_NO_ERROR = "not an error"
_FRAME = re.compile(r'\s{0,40}File "([^"\n]{1,400})", line \d{1,9}, in (\S{1,200})')
_HEADER = "Traceback (most recent call last)"
_FAILS = frozenset({"waited", "died", "refused", "raised"})


def parse_log_components(record: Evidence) -> list[Fact]:
    """Of each file the last few such lines, as events `component-line`: {component, kind, by}."""
    rows = [row for row in rows_of(record)[-LAST_LINES:] if row.text.strip()]
    failing = [row for row in rows if fails(row.text[:SEEN])]
    read = [(row, _reading(row)) for row in failing[-MOST:]]
    found: list[Fact] = [_event(record, row, told) for row, told in read if told is not None]
    cut = _cut_traceback(rows)
    return [*found, *([_event(record, *cut)] if cut is not None else [])]


def component_named(event: LogEvent) -> Reading | None:
    """What a `component-line` was read as."""
    told = event.captured
    return next(
        (
            Reading(one, cast("EventKind", told["kind"]), cast("By", told["by"]))
            for one in components()
            if one.id == told.get("component")
        ),
        None,
    )


def fails(text: str) -> bool:
    """Whether a line tells of a failure or a wait, and nobody else reads it: exceptions, progress
    and what a logger or the line itself calls harmless are left out.
    """
    return (
        event_kind(text) in _FAILS
        and _FRAME.search(text) is None
        and not _EXCEPTION.match(text)
        and not _MILD.search(text)
        and _NO_ERROR not in text
        and read_step(text) is None
    )


def _reading(row: Row) -> Reading | None:
    told = read_component(row.text[:SEEN])
    return told if told is not None and told.by in ("form", "cut") else None


def _cut_traceback(rows: Sequence[Row]) -> tuple[Row, Reading] | None:
    """A traceback with which the log ends before its last line, by the frames that are left."""
    frames: list[str] = []
    for row in reversed(rows):
        frame = _FRAME.match(row.text)
        if frame is not None:
            frames.append(f"{frame[1]} {frame[2]}")
        elif _HEADER in row.text:
            told = read_component("", frames, own=bool(frames) and "-packages/" not in frames[0])
            return (row, Reading(told.component, "raised", told.by)) if told is not None else None
        elif row.text[:1] not in " \t":
            return None
    return None


def _event(record: Evidence, row: Row, told: Reading) -> LogEvent:
    return LogEvent(
        evidence=(record.id,),
        cell=record.cell,
        rank=row.rank,
        event=COMPONENT_LINE,
        line=row.text.strip()[:LINE_CHARACTERS],
        stream="log",
        at=row.at,
        captured={"component": told.component.id, "kind": told.kind, "by": told.by},
        place=row.place,
        host=row.host,
        seen_at=row.seen_at,
    )
