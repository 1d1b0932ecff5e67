"""Lines of styled words within a width. A style is a role such as `strong`; what it looks like
is the terminal's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from trainprobe.report.phrases import clean, columns

Style = Literal["plain", "strong", "faint", "bad", "warn", "good", "command"]


class Span(NamedTuple):
    """A piece of a line, already cleaned."""

    text: str
    style: Style = "plain"


Line = tuple[Span, ...]
_COMMAND = re.compile(
    r"(?:[A-Z][A-Z0-9_]*=\S+"
    r" +)*(?:\./|/)?(?:sudo|export|unset|ulimit|env|ls|cat|grep|find|rm|df|du|ps|kill|free|ip|ss"
    r"|getent|dmesg|nvidia-smi|nvcc|scontrol"
    r"|python[0-9.]*|pip[0-9.]*|torchrun|accelerate|trainprobe|py-spy|gdb|docker|srun|sbatch"
    r"|mount|sysctl|journalctl|systemctl|lsof|fuser|ldd|conda|uv)(?: |$)"
)


def span(text: str, style: Style = "plain") -> Span:
    """Return `text` cleaned of control characters, in `style`."""
    return Span(clean(text), style)


def plain(line: Line) -> str:
    """Return the text of `line` without trailing blanks."""
    return "".join(piece.text for piece in line).rstrip()


def wrapped(
    pieces: Iterable[Span], width: int, *, first: str = "", rest: str | None = None
) -> list[Line]:
    """Break `pieces` into lines of at most `width` columns.

    `first` starts the first line (a label or an indent) and stays a span of its own, `rest` starts
    all others, by default with as many blanks. Pieces are joined by one blank. A word longer than a
    line is cut.
    """
    rest = " " * columns(first) if rest is None else rest
    done: list[Line] = []
    line: list[Span] = [Span(first)]
    used = columns(first)
    fresh = True
    for word in _words(pieces):
        for part in _cut(word, width - columns(rest)):
            if not fresh and used + 1 + columns(part.text) > width:
                done.append(tuple(line))
                line, used, fresh = [Span(rest)], columns(rest), True
            piece = part if fresh else Span(f" {part.text}", part.style)
            if len(line) > 1 and line[-1].style == piece.style:
                piece = Span(line.pop().text + piece.text, piece.style)
            line.append(piece)
            used += columns(part.text) + (0 if fresh else 1)
            fresh = False
    done.append(tuple(line))
    return done


def typed(step: str, width: int, *, indent: str) -> list[Line]:
    """Return a step, over several lines where it must be. Of a command each line but the last
    ends in a backslash, so that it can still be copied.
    """
    text = clean(step)
    if not _COMMAND.match(text):
        return (
            wrapped([Span(text)], width, first=indent)
            if columns(indent) + columns(text) > width
            else [(Span(indent), Span(text))]
        )
    lines: list[Line] = []
    room = width - columns(indent) - 2
    while columns(text) > room + 2 and " " in text[1:room]:
        at = text.rindex(" ", 1, room)
        lines.append((Span(indent), Span(text[:at].rstrip(), "command"), Span(" \\", "faint")))
        text = text[at:].lstrip()
        indent = indent if len(lines) > 1 else indent + "  "
        room = width - columns(indent) - 2
    lines += [
        (Span(indent), Span(part.text, "command"))
        for part in _cut(Span(text), width - columns(indent))
    ]
    return lines


def _words(pieces: Iterable[Span]) -> Iterable[Span]:
    for piece in pieces:
        for word in piece.text.split():
            yield Span(word, piece.style)


def _cut(word: Span, room: int) -> Iterable[Span]:
    room = max(room, 8)
    rest = word.text
    while columns(rest) > room:
        at = len(rest)
        while columns(rest[:at]) > room:
            at -= 1 if at <= room else max(1, (at - room) // 2)
        yield Span(rest[:at], word.style)
        rest = rest[at:]
    yield Span(rest, word.style)
