"""The readiness of nodes in lines: the nodes to leave out, what failed and who must act, what
differs between nodes, and which checks were not made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from trainprobe.model.diagnosis import Report
from trainprobe.model.node_names import folded
from trainprobe.report.extra import listed, rows_of, text_of, texts_of
from trainprobe.report.lines import Block, Line, Span, Style, padded, span, wrapped
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
    nodes = len(listed(found, "nodes"))
    named = {host for cause in report.causes if cause.named for host in cause.hosts}
    differences = [row for row in rows_of(found, "differences") if _text(row, "name")]
    return [
        *_leave_out(found, width, judged=report.conclusive),
        *_counts(checks, width, nodes),
        *_failed(checks, width, several=nodes > 1, named=named),
        *_differences(differences, width),
        *_dropped(rows_of(found, "dropped"), width),
    ]


def is_in_checks(report: Report, says: str) -> bool:
    """Whether the list of checks has the same sentence."""
    return any(
        _matters(row) and _text(row, "says") and clean(says).endswith(_text(row, "says"))
        for row in rows_of(readiness_of(report), "checks")
    )


def _leave_out(found: Mapping[str, Any], width: int, *, judged: bool) -> list[Line]:
    line = _text(found, "exclude_line")
    if not line:
        return []
    rest = "the rest is ready without" if not found.get("shared") else "some of it stays without"
    pronoun = "it" if len(texts_of(found, "exclude")) == 1 else "them"
    remark = f"{rest} {pronoun}" if judged else "whether the rest is ready is not known"
    pieces = [Span(clean(line), "command"), span(f"({remark})", "faint")]
    lines = wrapped(pieces, width, first="leave out  ")
    for step in listed(found, "drain")[:1]:
        pieces = [Span(clean(str(step)), "command"), span("[admin]", "faint")]
        lines += wrapped(pieces, width, first="drain      ")
    return lines


def _counts(checks: Sequence[Mapping[str, Any]], width: int, nodes: int) -> list[Line]:
    """Each check counts once, with its worst state on any node."""
    order = ("fail", "unknown", "warn", "ok", "skip")
    worst: dict[str, str] = {}
    for row in checks:
        state = _text(row, "state") if _text(row, "state") in order else "unknown"
        name = _text(row, "id")
        worst[name] = min((state, worst.get(name, "skip")), key=order.index)
    counted = Counter(worst.values())
    parts = [f"{counted[state]} {word}" for state, word in _WORDS if counted[state]]
    says = (", ".join(parts) or "none were made") + (f"; on {nodes} nodes" if nodes > 1 else "")
    return wrapped([span(says)], width, first="checks     ")


def _failed(
    checks: Sequence[Mapping[str, Any]], width: int, *, several: bool, named: AbstractSet[str]
) -> list[Line]:
    """What matters and failed or is not known: check, nodes, who must act, the threshold and its
    source.

    For nodes in `named` a cause above shows what was found and what to do.
    """
    matter = [row for row in checks if _matters(row)]
    lines: list[Line] = []
    for row in matter[:MOST_ROWS]:
        state, hosts = _text(row, "state"), texts_of(row, "hosts")
        explained = state == "fail" and set(hosts) <= named
        head = [
            Span("failed" if state == "fail" else "not known", _STYLES[state]),
            span(_text(row, "id"), "strong"),
            *([span(folded(hosts))] if several else []),
            span(f"[{_text(row, 'who') or 'user'}]", "faint"),
        ]
        lines += wrapped(head, width, first="  ", rest="     ")
        if not explained:
            lines += wrapped([span(_text(row, "says"))], width, first="     ")
        limit, source = _text(row, "threshold"), _text(row, "source")
        if limit or source:
            texts = (f"wanted: {limit}" if limit else "", f"({source})" if source else "")
            lines += wrapped(map(span, texts), width, first="     ")
        if _text(row, "fix") and not explained:
            lines += wrapped([span(_text(row, "fix"), "command")], width, first="     do: ")
    if len(matter) > MOST_ROWS:
        rest = span(f"and {len(matter) - MOST_ROWS} more in the JSON", "faint")
        lines += wrapped([rest], width, first="  ")
    minor = [row for row in checks if _text(row, "state") == "unknown" and not _matters(row)]
    for says, names in list(_ids_by(minor, "says").items())[:MOST_ROWS]:
        pieces = [span("not known", "warn"), span(f"{', '.join(names)}: {says}", "faint")]
        lines += wrapped(pieces, width, first="  ", rest="     ")
    return lines


def _ids_by(rows: Iterable[Mapping[str, Any]], name: str) -> dict[str, list[str]]:
    """The ids of the rows, each once, by their text of this name."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        found.setdefault(_text(row, name) or "no reason was given", {})[_text(row, "id")] = None
    return {reason: list(ids) for reason, ids in found.items()}


def _matters(row: Mapping[str, Any]) -> bool:
    state, severity = _text(row, "state"), _text(row, "severity")
    return (state == "fail" and severity in ("blocker", "degraded")) or (
        state == "unknown" and severity == "blocker"
    )


def _differences(rows: Sequence[Mapping[str, Any]], width: int) -> list[Line]:
    """A small table: what differs, and which nodes have which value, the minority first."""
    shown = [row for row in rows if _text(row, "severity") != "info"][:MOST_DIFFERENCES]
    if not shown:
        return []
    names = min(28, max(columns(_text(row, "name")) for row in shown))
    block = Block("differs    ", width)
    for row in shown:
        camps = [
            f"{folded(texts_of(camp, 'hosts'))}: {_short(_text(camp, 'value'))}"
            for camp in reversed(rows_of(row, "camps"))
        ]
        name = padded(_text(row, "name")[:names], names)
        label = "differs    " if not block.lines else " " * 11
        block.lines += wrapped([span("   ".join(camps))], width, first=f"{label}{name}  ")
    block.add_rest(len(rows) - len(shown), "more in the JSON")
    return block.lines


def _dropped(rows: Sequence[Mapping[str, Any]], width: int) -> list[Line]:
    """The checks that were not made, by reason."""
    block = Block("not made   ", width)
    for reason, names in _ids_by(rows, "reason").items():
        more = f" and {len(names) - MOST_DROPPED} more" if len(names) > MOST_DROPPED else ""
        block.add(span(f"{', '.join(names[:MOST_DROPPED])}{more}: {reason}", "faint"))
    return block.lines


def _short(value: str) -> str:
    return value if len(value) <= 48 else f"{value[:47]}…"


def _text(row: Mapping[str, Any], name: str) -> str:
    return clean(text_of(row, name))
