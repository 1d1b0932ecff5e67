"""The events of a probe or of a witness: JSON lines, of which any may be torn, nonsense, or far
too many.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

READ_CAP_BYTES = 4 * 2**20
EVENTS_CAP = 2000
KEPT_FIRST = 1500
NUMBER_CAP = 2**63
LINE_CAP_BYTES = 300 * 1024
ANSWERS = ("yes", "no", "cannot")


@dataclass(frozen=True)
class Events:
    """What one process said. `cut` is true when there was more than was kept; `bad_sample` is
    the first line that is no event.
    """

    events: tuple[Mapping[str, Any], ...] = ()
    bad_lines: int = 0
    bad_sample: str = ""
    cut: bool = False

    @property
    def answer(self) -> tuple[str, str]:
        """The last `result` as (answer, says), both empty when there was none that can be
        understood.
        """
        for event in reversed(self.events):
            if event.get("event") == "result" and event.get("answer") in ANSWERS:
                return str(event["answer"]), str(event.get("says", ""))
        return "", ""

    @property
    def open_phase(self) -> str:
        """The innermost phase that was begun and not ended."""
        stack: list[str] = []
        for event in self.events:
            name = str(event.get("name", ""))
            if event.get("event") == "phase.begin":
                stack.append(name)
            elif event.get("event") == "phase.end" and name in stack:
                del stack[len(stack) - 1 - stack[::-1].index(name) :]
        return stack[-1] if stack else ""

    def measures(self) -> list[dict[str, Any]]:
        """The `measure` events as rows of the report; those whose value is no number are left
        out.
        """
        rows = []
        for event in self.events:
            value = event.get("value")
            if (
                event.get("event") != "measure"
                or isinstance(value, bool)
                or not isinstance(value, (int, float))
            ):
                continue
            threshold = event.get("threshold")
            rows.append(
                {
                    "name": str(event.get("name", "")),
                    "value": float(value),
                    "unit": str(event.get("unit", "")),
                    "threshold": (
                        float(threshold)
                        if isinstance(threshold, (int, float)) and not isinstance(threshold, bool)
                        else None
                    ),
                    "source": str(event.get("source", "")),
                    "who": str(event.get("who", "")),
                }
            )
        return rows


def read(path: str) -> Events:
    """Read an event file; one that is not there has no events."""
    try:
        with open(path, "rb") as file:
            head = file.read(READ_CAP_BYTES)
            size = file.seek(0, 2)
            tail = b""
            if size > len(head):
                file.seek(max(len(head), size - READ_CAP_BYTES // 4))
                tail = file.read(READ_CAP_BYTES // 4)
    except (OSError, ValueError):
        return Events()
    if not tail:
        return parse(head)
    # The beginning tells the phases and the end the answer; what is cut apart in the middle is
    # neither line.
    first, _, _ = head.rpartition(b"\n")
    _, _, last = tail.partition(b"\n")
    return parse(first + b"\n" + last, cut=True)


def parse(content: bytes, *, cut: bool = False) -> Events:
    events: list[Mapping[str, Any]] = []
    bad_lines, bad_sample = 0, ""
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        event = _event(line)
        if event is None:
            bad_lines += 1
            bad_sample = bad_sample or line[:200].decode("utf-8", "replace")
        else:
            events.append(event)
    if len(events) > EVENTS_CAP:
        events, cut = events[:KEPT_FIRST] + events[KEPT_FIRST - EVENTS_CAP :], True
    return Events(tuple(events), bad_lines, bad_sample, cut)


def _event(line: bytes) -> Mapping[str, Any] | None:
    if len(line) > LINE_CAP_BYTES:
        return None
    try:
        event = json.loads(line, parse_constant=_no_number, parse_int=_whole, parse_float=_decimal)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def _whole(text: str) -> int | None:
    """What is beyond 64 bits is a number for Python only: nothing further on can hold it."""
    value = int(text)
    return value if abs(value) < NUMBER_CAP else None


def _decimal(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _no_number(name: str) -> None:
    """NaN and Infinity are no JSON; as null they do no harm further on."""
