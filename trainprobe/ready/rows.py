"""The events of a check program as rows of evidence. A program may say anything: what is no check or no value is passed over."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from trainprobe.checks import STATES

MOST_ROWS, MOST_VALUES = 400, 400
SAYS, VALUE, NAME = 2000, 4000, 200
MOST_LISTED = 64


def check_rows(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each check that was told: id, state, value, says, and what the program knows better than the catalogue. A later word wins."""
    rows: dict[str, dict[str, Any]] = {}
    for event in events:
        check = event.get("check")
        if event.get("event") not in ("note", "fail") or not isinstance(check, str) or not check or (check not in rows and len(rows) >= MOST_ROWS):
            continue
        state = event.get("status") if event.get("status") in STATES else "fail" if event["event"] == "fail" else "unknown"
        says = event.get("says")
        row = {"id": check[:NAME], "state": state, "value": _value(event.get("value")), "says": says[:SAYS] if isinstance(says, str) else ""}
        for name in ("fix", "source", "severity", "who"):
            if isinstance(event.get(name), str) and event[name]:
                row[name] = event[name][:SAYS]
        if isinstance(event.get("threshold"), (str, int, float)) and not isinstance(event["threshold"], bool):
            row["threshold"] = _value(event["threshold"])
        rows[_key(rows, row)] = row
    return list(rows.values())


def dropped_rows(events: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the checks that a program left out by itself, each with the reason."""
    told = [event for event in events if event.get("event") == "dropped" and isinstance(event.get("check"), str)]
    return [{"id": event["check"][:NAME], "reason": str(event.get("says") or "no reason was given")[:SAYS]} for event in told[:MOST_ROWS]]


def value_rows(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return {name: text, number or list of these} of what this node told for comparison."""
    values: dict[str, Any] = {}
    for event in events:
        name = event.get("name")
        if event.get("event") == "value" and isinstance(name, str) and name and len(values) < MOST_VALUES:
            values[name[:NAME]] = _value(event.get("value"))
    return values


def _key(rows: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """One check may be made at several places (`fs.space` of each folder): told twice with different words, it is two rows."""
    key = row["id"]
    while key in rows and rows[key]["says"] != row["says"]:
        key += "+"
    return str(key)


def _value(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return value if math.isfinite(value) and abs(value) < 2**63 else str(value)[:NAME]
    if isinstance(value, str):
        return value[:VALUE]
    if isinstance(value, (list, tuple)):
        return [_value(item) if not isinstance(item, (list, tuple, dict)) else str(item)[:NAME] for item in value[:MOST_LISTED]]
    if isinstance(value, Mapping):
        return {
            str(name)[:NAME]: _value(item) if not isinstance(item, (list, tuple, dict)) else str(item)[:NAME]
            for name, item in list(value.items())[:MOST_LISTED]
        }
    return str(value)[:VALUE]
