"""Separates tracebacks that several processes wrote line by line into one stream."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

OPEN_CAP = 64
_HEADER = re.compile(r"\s{0,4}Traceback \(most recent call last\):\s{0,8}$")
_FRAME = re.compile(r'\s{2,8}File "[^"]{1,1000}", line \d{1,9}')
_CODE = re.compile(r"\s{4,80}\S")
_MARKS = re.compile(r"\s{4,400}[\^~]{1,400}[\^~ ]{0,400}$")
_REPEATED = re.compile(r"\s{2,8}\[Previous line repeated \d{1,9} more times?\]")
_ENDING = re.compile(r"(?:[A-Za-z_]\w{0,80}\.){0,10}[A-Za-z_]\w{0,80}(?:: |:?$)")
_LINK = re.compile(
    r"(?:During handling of the above exception|The above exception was the direct cause)"
)


@dataclass
class _Stream:
    """One process's traceback: the numbers of its lines, and the kind of the last one: header,
    frame, code, marks, ending, link.
    """

    lines: list[int] = field(default_factory=list)
    last: str = "header"
    touched: int = 0
    frames: int = 0


def separate_tracebacks(lines: Sequence[str]) -> list[int]:
    """Return the numbers of the lines, from 0, in an order that keeps every traceback in one piece.

    Nothing says which process wrote a line, so it goes to the traceback that has waited longest for
    such a line. Most often all processes raise the same, and any assignment is right.
    """
    order: list[int] = []
    at = 0
    while at < len(lines):
        if not _HEADER.match(lines[at]):
            order.append(at)
            at += 1
            continue
        stop, mixed = _knot(lines, at)
        order += _sorted_out(lines, at, stop) if mixed else range(at, stop)
        at = stop
    return order


def _knot(lines: Sequence[str], begin: int) -> tuple[int, bool]:
    """Return where the traceback, or the knot of several, that begins at `begin` ends, and whether
    it is a knot.
    """
    headers = waiting = 0
    for at in range(begin, len(lines)):
        text = lines[at]
        if _HEADER.match(text):
            headers += 1
            waiting += 1
        elif _FRAME.match(text) or _CODE.match(text) or _REPEATED.match(text):
            pass
        elif _ENDING.match(text) and not _LINK.match(text):
            waiting -= 1
            if waiting == 0:
                return at + 1, headers > 1
        elif text.strip():
            return at, headers > 1
        if headers > OPEN_CAP:
            return at + 1, False
    return len(lines), headers > 1


def _sorted_out(lines: Sequence[str], begin: int, stop: int) -> list[int]:
    streams: list[_Stream] = []
    loose: list[int] = []
    for number in range(begin, stop):
        text = lines[number]
        if _HEADER.match(text):
            streams.append(_Stream([number], touched=number))
            continue
        kind, wanted = _kind(text)
        takers = [
            each for each in streams if each.last in wanted and (kind != "ending" or each.frames)
        ]
        if not takers:
            loose.append(number)
            continue
        stream = min(takers, key=lambda each: each.touched)
        stream.lines.append(number)
        stream.last, stream.touched = kind, number
        stream.frames += kind == "frame"
    return [number for stream in streams for number in stream.lines] + loose


def _kind(text: str) -> tuple[str, tuple[str, ...]]:
    """The kind of a line, and the kinds that it may follow."""
    if _FRAME.match(text):
        return "frame", ("header", "code", "marks", "frame")
    if _MARKS.match(text):
        return "marks", ("code",)
    if _REPEATED.match(text):
        return "marks", ("code", "marks")
    if _CODE.match(text):
        return "code", ("frame",)
    if text.strip():
        return "ending", ("code", "marks", "frame")
    return "blank", ()
