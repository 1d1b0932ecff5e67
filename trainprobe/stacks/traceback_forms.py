"""Tracebacks in other dress, rewritten line by line into Python's own: rich's boxes, IPython's,
log prefixes; and the bare last line of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainprobe.stacks.traceback_text import whole_message

HEADER = "Traceback (most recent call last):"
_BOX_TOP = re.compile(
    r"\s{0,80}[\u256d\u250c+][\u2500\u2501-]{1,200} Traceback \(most recent call last\)"
)
_BOX_FRAME = re.compile(r"((?:[A-Za-z]:)?[^\s:]?[^:\n]{0,1000}?):(\d{1,9}) in ([^\s(]{1,200})")
_BOX_CODE = re.compile(r"[\u2771>] {0,4}\d{1,9} [\u2502|] ?(.{0,400})")
_SIDES = "\u2502|\u2503"
_NOTEBOOK = re.compile(r"[A-Za-z_][\w.]{0,200} {2,200}Traceback \(most recent call last\)$")
_CELL = re.compile(
    r"(?:Cell )?(?:In ?\[(\d{0,9})\]|Input In \[(\d{0,9})\]), (?:line (\d{1,9})|in <cell line:"
    r" (\d{1,9})>)(?:, in ([^\s(]{1,200}))?"
)
_FILE_NEW = re.compile(r"File ([^\s\"][^\n\"]{0,1000}?):(\d{1,9}), in ([^\s(]{1,200})")
_FILE_OLD = re.compile(
    r"((?:/|~|<ipython-input|[A-Za-z]:\\)[^\n:]{0,1000}?) in ([^\s(]{1,200})(?:\(.{0,400})?$"
)
# Colab makes links of file names.
_LINK = re.compile(r"^\[([^\]\n]{1,1000})\]\(https?://[^)\s]{0,300}\)")
_ARROW = re.compile(r"-{1,10}> ?(\d{1,9}) ?(.{0,400})")
_BARE = re.compile(
    r"(?:E {2,4}|ERROR:? {1,4}|error:"
    r" )?((?:[A-Za-z_]\w{0,80}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Timeout|NotMet"
    r"|Died|Exit)|KeyboardInterrupt|StopIteration)"
    r"(?:\([A-Z]\w{0,80}\))?(?:: (.{0,2000}))?$"
)
# Ray raises what a remote task raised, and puts the task's own frames behind the name.
_RAY_TASK = re.compile(r"(?:\w{1,40}\.){0,4}RayTaskError(?:\(\w{1,100}\))?: .{0,40}ray::\S")
_DIGITS = re.compile(r"\d")
_PARTS_OF_NAMES = ("Err", "Exc", "Inter", "NotMet", "Exit", "Died", "Timeout", "StopIter")
_WITHOUT_MESSAGE = ("KeyboardInterrupt", "StopIteration", "MemoryError", "AssertionError")
LOOK_AHEAD = 14


def classic(lines: Sequence[str]) -> list[str]:
    """Return as many lines, in which every known form of traceback looks as Python prints it.
    Text that is none stays as it is.
    """
    done = list(lines)
    place = 0
    while place < len(done):
        line = done[place]
        if "RayTaskError" in line and _RAY_TASK.match(line) and _has_frames(done, place + 1):
            done[place] = HEADER
        if "Traceback (most recent call last)" in line:
            if _BOX_TOP.match(line):
                place = _box(done, place)
                continue
            if _NOTEBOOK.match(line.strip()):
                place = _notebook(done, place)
                continue
            if line.rstrip().endswith(HEADER):
                _prefixed(done, place)
        place += 1
    return done


def _has_frames(lines: Sequence[str], place: int) -> bool:
    return place < len(lines) and lines[place].startswith('  File "')


def _box(lines: list[str], place: int) -> int:
    """A box that rich draws: `│ /job/train.py:45 in main │`, then the source with `❱` before the
    line.
    """
    lines[place] = HEADER
    place += 1
    left = ""
    while place < len(lines):
        inner = lines[place].strip()
        if inner[:1] not in _SIDES or not inner:
            closes = inner[:1] in "\u2570\u2514+" and inner != ""
            lines[place] = "" if closes else lines[place]
            return place + 1 if closes else place
        inner = inner.strip(_SIDES + " ")
        frame, code = _BOX_FRAME.match(left + inner), _BOX_CODE.match(inner)
        lines[place] = ""
        if code is not None:
            lines[place] = f"    {code.group(1).strip()}"
        elif frame is not None and not inner[:1].isdecimal():
            lines[place] = f'  File "{frame.group(1)}", line {frame.group(2)}, in {frame.group(3)}'
        path = inner.startswith(("/", "~")) and " " not in inner
        left = inner if frame is None and code is None and path else ""
        place += 1
    return place


def _notebook(lines: list[str], place: int) -> int:
    """IPython's form, of version 7 (`file in f(args)` and an arrow) and of version 8 (`File
    path:12, in f(args)`, `Cell In[5], line 3`).
    """
    kind = lines[place].split()[0]
    lines[place] = HEADER
    place += 1
    while place < len(lines):
        line = lines[place]
        bare = _LINK.sub(r"\1", line.strip())
        frame = _notebook_line(lines, place, bare)
        if frame:
            lines[place] = frame
        elif (bare and not line[:1].isspace() and _BARE.match(bare)) or HEADER[:-1] in bare:
            return place
        else:
            lines[place] = ""
        place += 1
    # Cut off before its last line: the header names the exception too.
    if not lines[-1].strip() and _BARE.match(kind):
        lines[-1] = kind
    return place


def _notebook_line(lines: Sequence[str], place: int, bare: str) -> str:
    """A frame of IPython's, or the line in it that its arrow shows, as Python prints them; empty
    for another line.
    """
    arrow = _ARROW.match(bare)
    cell, new, old = _CELL.match(bare), _FILE_NEW.match(bare), _FILE_OLD.match(bare)
    if cell is not None:
        number = cell.group(3) or cell.group(4)
        file = f"<cell {cell.group(1) or cell.group(2) or ''}>"
        return f'  File "{file}", line {number}, in {cell.group(5) or "<module>"}'
    if new is not None:
        return f'  File "{new.group(1)}", line {new.group(2)}, in {new.group(3)}'
    if old is not None:
        below = lines[place + 1 : place + LOOK_AHEAD]
        arrows = (_ARROW.match(text.strip()) for text in below)
        number = next((found.group(1) for found in arrows if found), "0")
        return f'  File "{old.group(1)}", line {number}, in {old.group(2)}'
    return f"    {arrow.group(2).strip()}" if arrow is not None else ""


def without_dress(lines: Sequence[str]) -> tuple[list[str], bool]:
    """The lines of a traceback that has lost its header, with IPython's frames as Python prints
    them, and whether there are such.
    """
    if not any(_FILE_NEW.match(line.strip()) for line in lines):
        return list(lines), False
    return [_notebook_line(lines, at, line.strip()) for at, line in enumerate(lines)], True


def _prefixed(lines: list[str], place: int) -> None:
    """A header behind something else (`ERROR:root:`, a stamp, a worker's name): take it off, and
    off the lines behind it that carry its like.
    """
    prefix = lines[place].rstrip()[: -len(HEADER)]
    if not prefix or prefix.endswith(("Original ", "Exception Group ")) or not prefix.strip(" |+"):
        return
    shape = _DIGITS.sub("0", prefix)
    lines[place] = HEADER
    for at in range(place + 1, min(place + 400, len(lines))):
        head = lines[at][: len(prefix)]
        if _DIGITS.sub("0", head).rstrip() != shape.rstrip():
            return
        lines[at] = lines[at][len(prefix) :]


def bare_errors(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield (place, type, message) of lines that say an exception's type and message and nothing
    else, such as a fragment's only line. A text that begins with one is the end of a traceback, and
    the further lines of the message belong to it.
    """
    found = [
        (place, match)
        for place, line in enumerate(lines)
        if any(part in line for part in _PARTS_OF_NAMES)
        and (match := _BARE.match(line.strip()))
        and (match.group(2) is not None or match.group(1) in _WITHOUT_MESSAGE)
    ]
    begins = next((place for place, line in enumerate(lines) if line.strip()), 0)
    ends = [place for place, _ in found[1:]] + [len(lines)]
    for (place, match), end in zip(found, ends):
        message = (match.group(2) or "").strip()
        if place == begins:
            message = whole_message(lines[:end], place + 1, message)
        yield place, match.group(1), message
