"""Lines of styled words within a width. A style is a role such as `strong`; the terminal decides on
its looks.
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
    r"(?:[A-Z][A-Z0-9_]*=\S+ +)*(?:\./|/)?(?:sudo|export|unset|ulimit|env|ls|cat|grep|find|rm|df|du"
    r"|ps|kill|free|ip|ss|getent|dmesg|nvidia-smi|nvcc|scontrol|python[0-9.]*|pip[0-9.]*|torchrun"
    r"|accelerate|trainprobe|py-spy|gdb|docker|srun|sbatch|mount|sysctl|journalctl|systemctl|lsof"
    r"|fuser|ldd|conda|uv)(?: |$)"
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


class Block:
    """Wrapped lines under one label, which starts the first line; the others are indented."""

    def __init__(self, label: str, width: int) -> None:
        self.lines: list[Line] = []
        self._label, self._width = label, width

    def add(self, *pieces: Span, rest: int = 0) -> None:
        """Add one entry; its further lines are indented by `rest` more columns."""
        first = " " * columns(self._label) if self.lines else self._label
        indent = " " * (columns(self._label) + rest)
        self.lines += wrapped(pieces, self._width, first=first, rest=indent)

    def add_rest(self, count: int, what: str) -> None:
        """Add how many entries were left out, where there are any."""
        if count > 0:
            self.add(span(f"and {count} {what}", "faint"))


def wrapped_behind(start: Line, pieces: Iterable[Span], width: int) -> list[Line]:
    """Wrap `pieces` in the columns behind `start`, which begins the first line."""
    first, *rest = wrapped(pieces, width, first=" " * sum(columns(piece.text) for piece in start))
    return [(*start, *first[1:]), *rest]


def padded(text: str, width: int) -> str:
    """Return `text` with blanks up to `width` columns."""
    return text + " " * (width - columns(text))


def typed(step: str, width: int, *, indent: str) -> list[Line]:
    """Return a step, over several lines where it is long. The lines of a command end in a
    backslash, except the last, so that it can be copied.
    """
    text = clean(step)
    command, _, remark = text.partition("   ")
    if remark.strip():
        return _with_remark(command.rstrip(), _said(remark), width, indent)
    if not _COMMAND.match(text):
        too_long = columns(indent) + columns(text) > width
        return (
            wrapped([Span(text)], width, first=indent) if too_long else [(Span(indent), Span(text))]
        )
    lines: list[Line] = []
    room = width - columns(indent) - 2
    while columns(text) > room + 2 and " " in text[1:room]:
        at = text.rindex(" ", 1, room)
        lines.append((Span(indent), Span(text[:at].rstrip(), "command"), Span(" \\", "faint")))
        text = text[at:].lstrip()
        indent = indent if len(lines) > 1 else indent + "  "
        room = width - columns(indent) - 2
    parts = _cut(Span(text), width - columns(indent))
    return [*lines, *((Span(indent), Span(part.text, "command")) for part in parts)]


def as_typed(step: str) -> str:
    """A step on one line, with what is said of it as a comment."""
    command, _, remark = clean(step).partition("   ")
    return f"{command.rstrip()}  # {_said(remark)}" if remark.strip() else command


def _said(remark: str) -> str:
    remark = remark.strip().lstrip("# ")
    return remark[1:-1] if remark.startswith("(") and remark.endswith(")") else remark


def _with_remark(command: str, remark: str, width: int, indent: str) -> list[Line]:
    """What is typed, and what is said of it as a comment, in the shell as in Python: the whole can
    be copied.
    """
    lines = typed(command, width, indent=indent)
    used = sum(columns(piece.text) for piece in lines[-1])
    if used + 4 + columns(remark) <= width:
        return [*lines[:-1], (*lines[-1], Span(f"  # {remark}", "faint"))]
    first = f"{indent}# "
    return [*wrapped([Span(remark, "faint")], width, first=first, rest=first), *lines]


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
