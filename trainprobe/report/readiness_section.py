"""The readiness of nodes in lines: whom to leave out, what failed and who must act, what
differs, what was not made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from trainprobe.model.diagnosis import Report
from trainprobe.model.node_names import folded
from trainprobe.report.extra import listed, rows_of
from trainprobe.report.lines import Line, Span, Style, span, wrapped
from trainprobe.report.phrases import clean, columns

MOST_ROWS, MOST_DIFFERENCES, MOST_DROPPED = 12, 8, 12
_WORDS = (
    ("ok", "passed"),
    ("warn", "with a warning"),
    ("fail", "failed"),
    ("unknown", "not known"),
    ("skip", "not for these nodes"),
)
_STYLES: Mapping[str, Style] = {"fail": "bad", "unknown": "warn", "warn": "warn"}


def readiness_of(report: Report) -> Mapping[str, Any]:
    """The report's `readiness`, empty where it has none."""
    found = report.extra.get("readiness")
    return found if isinstance(found, Mapping) else {}


def readiness_lines(report: Report, width: int) -> list[Line]:
    """Return what `ready` found as lines of at most `width` columns; none for another command's
    report.
    """
    found = readiness_of(report)
    if not found:
        return []
    checks = [row for row in rows_of(found, "checks") if _text(row, "id")]
    several = len(listed(found, "nodes")) > 1
    lines = _leave_out(found, width)
    lines += _counts(checks, width, len(listed(found, "nodes")))
    lines += _failed(
        checks,
        width,
        several=several,
        told={host for cause in report.causes if cause.named for host in cause.hosts},
    )
    lines += _differences(
        [row for row in rows_of(found, "differences") if _text(row, "name")], width
    )
    return lines + _dropped(rows_of(found, "dropped"), width)


def told_already(report: Report, says: str) -> bool:
    """Does the list of checks say the same?"""
    return any(
        _matters(row) and _text(row, "says") and clean(says).endswith(_text(row, "says"))
        for row in rows_of(readiness_of(report), "checks")
    )


def _leave_out(found: Mapping[str, Any], width: int) -> list[Line]:
    line = _text(found, "exclude_line")
    if not line:
        return []
    rest = "the rest is ready without" if not found.get("shared") else "some of it stays without"
    names = [name for name in listed(found, "exclude") if isinstance(name, str)]
    lines = wrapped(
        [
            Span(clean(line), "command"),
            span(f"({rest} {'it' if len(names) == 1 else 'them'})", "faint"),
        ],
        width,
        first="leave out  ",
    )
    for step in listed(found, "drain")[:1]:
        lines += wrapped(
            [Span(clean(str(step)), "command"), span("[admin]", "faint")],
            width,
            first="drain      ",
        )
    return lines


def _counts(checks: Sequence[Mapping[str, Any]], width: int, nodes: int) -> list[Line]:
    """Each check counts once, by the worst that it was on any node."""
    order = ("fail", "unknown", "warn", "ok", "skip")
    worst: dict[str, str] = {}
    for row in checks:
        state = _text(row, "state") if _text(row, "state") in order else "unknown"
        name = _text(row, "id")
        worst[name] = min((state, worst.get(name, "skip")), key=order.index)
    counted = Counter(worst.values())
    parts = [f"{counted[state]} {word}" for state, word in _WORDS if counted[state]]
    return wrapped(
        [
            span(
                (", ".join(parts) if parts else "none were made")
                + (f"; on {nodes} nodes" if nodes > 1 else "")
            )
        ],
        width,
        first="checks     ",
    )


def _failed(
    checks: Sequence[Mapping[str, Any]], width: int, *, several: bool, told: AbstractSet[str]
) -> list[Line]:
    """What failed or is not known of what matters: check, nodes, who must act, what it was held
    against and where that comes from.

    Of nodes in `told` a cause has said above what was found and what to do.
    """
    matter = [row for row in checks if _matters(row)]
    lines: list[Line] = []
    for row in matter[:MOST_ROWS]:
        state = _text(row, "state")
        head = [
            Span(f"{'failed' if state == 'fail' else 'not known'}", _STYLES[state]),
            span(_text(row, "id"), "strong"),
        ]
        head += (
            [span(folded([name for name in listed(row, "hosts") if isinstance(name, str)]))]
            if several
            else []
        )
        head += [span(f"[{_text(row, 'who') or 'user'}]", "faint")]
        lines += wrapped(head, width, first="  ", rest="     ")
        known = (
            state == "fail"
            and {name for name in listed(row, "hosts") if isinstance(name, str)} <= told
        )
        if not known:
            lines += wrapped([span(_text(row, "says"))], width, first="     ")
        limit, source = _text(row, "threshold"), _text(row, "source")
        if limit or source:
            lines += wrapped(
                [span(f"wanted: {limit}" if limit else ""), span(f"({source})" if source else "")],
                width,
                first="     ",
            )
        if _text(row, "fix") and not known:
            lines += wrapped([span(_text(row, "fix"), "command")], width, first="     do: ")
    if len(matter) > MOST_ROWS:
        lines += wrapped(
            [span(f"and {len(matter) - MOST_ROWS} more in the JSON", "faint")], width, first="  "
        )
    beside: dict[str, list[str]] = {}
    for row in checks:
        if _text(row, "state") == "unknown" and not _matters(row):
            beside.setdefault(_text(row, "says") or "no reason was given", []).append(
                _text(row, "id")
            )
    for says, names in list(beside.items())[:MOST_ROWS]:
        lines += wrapped(
            [
                span("not known", "warn"),
                span(f"{', '.join(dict.fromkeys(names))}: {says}", "faint"),
            ],
            width,
            first="  ",
            rest="     ",
        )
    return lines


def _matters(row: Mapping[str, Any]) -> bool:
    state, severity = _text(row, "state"), _text(row, "severity")
    return (state == "fail" and severity in ("blocker", "degraded")) or (
        state == "unknown" and severity == "blocker"
    )


def _differences(rows: Sequence[Mapping[str, Any]], width: int) -> list[Line]:
    """A small table: what differs, who has which value, the minority first."""
    shown = [row for row in rows if _text(row, "severity") != "info"][:MOST_DIFFERENCES]
    if not shown:
        return []
    names = min(28, max(columns(_text(row, "name")) for row in shown))
    lines: list[Line] = []
    for row in shown:
        camps = rows_of(row, "camps")
        said = [
            f"{folded([name for name in listed(camp, 'hosts') if isinstance(name, str)])}:"
            f" {_short(_text(camp, 'value'))}"
            for camp in reversed(camps)
        ]
        label = "differs    " if not lines else " " * 11
        name = clean(_text(row, "name"))[:names]
        lines += wrapped(
            [span("   ".join(said))], width, first=f"{label}{name}{' ' * (names - columns(name))}  "
        )
    if len(rows) > len(shown):
        lines += wrapped(
            [span(f"and {len(rows) - len(shown)} more in the JSON", "faint")], width, first=" " * 11
        )
    return lines


def _dropped(rows: Sequence[Mapping[str, Any]], width: int) -> list[Line]:
    """What was not made, by its reason."""
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        by_reason.setdefault(_text(row, "reason") or "no reason was given", []).append(
            _text(row, "id")
        )
    lines: list[Line] = []
    for reason, names in by_reason.items():
        kept = list(dict.fromkeys(names))
        more = f" and {len(kept) - MOST_DROPPED} more" if len(kept) > MOST_DROPPED else ""
        lines += wrapped(
            [span(f"{', '.join(kept[:MOST_DROPPED])}{more}: {reason}", "faint")],
            width,
            first="not made   " if not lines else " " * 11,
        )
    return lines


def _short(value: str) -> str:
    return value if len(value) <= 48 else f"{value[:47]}…"


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return clean(value) if isinstance(value, str) else ""
