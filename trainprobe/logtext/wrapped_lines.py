"""Rejoins lines that a terminal of fixed width has wrapped, as in text copied from a screen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

LEAST_WIDTH = 70
MOST_WIDTH = 400
LEAST_LINES = 3
ALIKE = 6
LEAST_RULE = 21
_LEFT_EDGES = frozenset("|+\u2502\u256d\u2570\u251c")
_RIGHT_EDGES = frozenset("|+\u2502\u256e\u256f\u2524")
# The beginnings of new lines.
_BEGINS = re.compile(
    r"\s{2,}|\[rank\d|\[[A-Za-z]{1,12}\d{1,6}\]:|\[(?:default|trainer)|Traceback \(|During"
    r" handling|The above exception|\[?[IWEF]\d{3,4} \d\d:|\[[EWIF]"
    r" |\[?\d{4}[-/]\d\d[-/]\d\d|\S{1,80}:\d{1,9}:\d{1,9} \[\d|frame #|\d{1,3}%\||\S{0,60}Error:"
    r" |srun: |slurmstepd[\w.-]{0,80}: "
)
# A frame of a traceback, its rest on the next line, and one that is whole.
_FRAME = re.compile(r'\bFile "[^"\n]{1,400}"')
_FRAME_WHOLE = re.compile(r'\bFile "[^"\n]{1,400}", line \d{1,7}, in \S')
_FRAME_REST = re.compile(r"\s{0,2}, (?:line \d{1,7}\b|in [\w<])")


def has_broken_frames(lines: Sequence[str]) -> bool:
    """Whether a traceback's frames go on in the next lines."""
    return any(line.lstrip().startswith(", ") for line in lines) and any(
        _continues_frame(line, following) for line, following in zip(lines, lines[1:])
    )


def wrap_width(lines: Sequence[str]) -> int:
    """Return the width at which the lines of a text were wrapped, 0 if they were not. `lines` have
    their trailing blanks, but no ends of line.

    No line of a wrapped text is wider, and many of that width continue in the middle of a word or
    sentence.
    """
    longest = max(lines, key=len, default="")
    if _is_text(longest):
        alone = list(map(len, lines)).count(len(longest)) < LEAST_LINES
        if len(longest) > MOST_WIDTH or alone:
            return 0  # no terminal is as wide, or nothing ends at its margin
    by_width: dict[int, list[str]] = {}
    for line in lines:
        by_width.setdefault(len(line), []).append(line)
    texts: dict[int, int] = {}  # lines of text, by width, down to the widest such line
    for width in sorted(by_width, reverse=True):
        texts[width] = sum(map(_is_text, by_width[width]))
        if texts[width]:
            break
    widest = min(texts, default=0)
    if (
        not texts.get(widest)
        or not LEAST_WIDTH <= widest <= MOST_WIDTH
        or texts[widest] < LEAST_LINES
    ):
        return 0
    too_many = (texts[widest] + 1) // 2  # lines that are nearly as wide: that is no margin
    if any(
        sum(1 for _ in islice(filter(_is_text, by_width.get(width, ())), too_many)) == too_many
        for width in range(widest - 3, widest)
    ):
        return 0
    going_on = sum(
        continues(line, following, widest)
        for line, following in zip(lines, lines[1:])
        if len(line) == widest
    )
    return widest if going_on >= max(LEAST_LINES - 1, texts[widest] // 3) else 0


def _is_text(line: str) -> bool:
    """Whether this is neither blank nor a rule or a row of a table."""
    text = line.strip()
    return (
        bool(text)
        and text[0] not in _LEFT_EDGES
        and text[-1] not in _RIGHT_EDGES
        and not (len(text) >= LEAST_RULE and text == text[0] * len(text))
    )


def _continues_frame(line: str, following: str) -> bool:
    """Whether `following` is the rest of a frame of a traceback, as some terminals break it."""
    return (
        _FRAME_REST.match(following) is not None
        and _FRAME.search(line) is not None
        and _FRAME_WHOLE.search(line) is None
    )


def continues(line: str, following: str, width: int) -> bool:
    """Whether `following` continues `line` in a text that was wrapped at `width`."""
    if not width or len(line) != width or line.endswith("  ") or not following.strip():
        return False
    if line[:ALIKE] == following[:ALIKE]:  # two rows of a table of progress
        return False
    return _BEGINS.match(following) is None and _is_text(line) and _is_text(following)


def rejoined(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return (the number of its first line, from 1; the whole line) for every line of a text."""
    width = wrap_width(lines)
    whole: list[tuple[int, str]] = []
    before = ""
    for number, line in enumerate(lines, 1):
        if whole and (continues(before, line, width) or _continues_frame(whole[-1][1], line)):
            whole[-1] = (whole[-1][0], whole[-1][1] + line)
        else:
            whole.append((number, line))
        before = line
    return whole
