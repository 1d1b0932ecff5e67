"""The user's own lines with the guilty one marked, as a compiler shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainprobe.model.diagnosis import Report
from trainprobe.report.extra import rows_of, text_of
from trainprobe.report.lines import Line, Span
from trainprobe.report.phrases import clean, columns

INDENT = "    "
ROWS_CAP = 10
_STEP = 4  # columns of one level of indentation
_LEAST_ROOM = 24
_LONGEST_WHO = 20


def excerpt_lines(report: Report, group: int, width: int) -> list[Line]:
    """Return the lines for the first cause of `group`; nothing where none of them is known."""
    found = [row for row in rows_of(report.extra, "excerpts") if row.get("group") == group]
    rows = [row for row in rows_of(found[0], "lines") if _number(row)] if found else []
    if not rows:
        return []
    rows = rows[-ROWS_CAP:]
    files = list(dict.fromkeys(text_of(row, "file") for row in rows))
    digits = max(len(str(_number(row))) for row in rows)
    least = min(_depth(row) for row in rows)
    lines: list[Line] = [_head(found[0], files[0], width)]
    last: Mapping[str, Any] | None = None
    for row in rows:
        if last is not None and text_of(row, "file") != text_of(last, "file"):
            lines.append(_head({}, text_of(row, "file"), width))
        elif last is not None and _number(row) != _number(last) + 1:
            lines.append((Span(f"{INDENT}  {'.' * min(digits, 3):>{digits}}", "faint"),))
        lines += _row(row, digits, _depth(row) - least, width)
        last = row
    return lines


def guilty_places(report: Report) -> frozenset[str]:
    """The marked lines, as `train.py:13`."""
    return frozenset(
        f"{text_of(row, 'file')}:{_number(row)}"
        for shown in rows_of(report.extra, "excerpts")
        for row in rows_of(shown, "lines")
        if row.get("guilty") is True
    )


def _head(shown: Mapping[str, Any], file: str, width: int) -> Line:
    who = clean(text_of(shown, "who"))[:_LONGEST_WHO]
    named = f"  ({who})" if who else ""
    arrow = f"{INDENT}--> "
    name = _cut(clean(file), width - len(arrow) - columns(named))
    return (Span(arrow, "faint"), Span(name), Span(named, "faint"))


def _row(row: Mapping[str, Any], digits: int, depth: int, width: int) -> Sequence[Line]:
    guilty = row.get("guilty") is True
    mark = ">" if guilty else " "
    margin = f"{INDENT}{mark} {_number(row):>{digits}} | "
    room = max(_LEAST_ROOM, width - columns(margin))
    blanks = " " * min(depth * _STEP, max(0, room - _LEAST_ROOM))
    text = _cut(clean(text_of(row, "text")), room - len(blanks))
    if not guilty:
        return [(Span(margin, "faint"), Span(blanks + text))]
    under = f"{INDENT}  {' ' * digits} | "
    return [
        (Span(margin, "bad"), Span(blanks + text, "strong")),
        (Span(under, "faint"), Span(f"{blanks}{'^' * columns(text)}", "bad")),
    ]


def _cut(text: str, room: int) -> str:
    if columns(text) <= room:
        return text
    while columns(text) > room - 1:
        text = text[:-1]
    return f"{text}…"


def _number(row: Mapping[str, Any]) -> int:
    value = row.get("line")
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _depth(row: Mapping[str, Any]) -> int:
    value = row.get("depth")
    return min(value, 20) if isinstance(value, int) and value > 0 else 0
