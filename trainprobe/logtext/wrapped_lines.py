"""Rejoins lines that a terminal of fixed width has wrapped, as in text copied from a screen."""

from __future__ import annotations

import re
from collections.abc import Sequence

LEAST_WIDTH = 70
MOST_WIDTH = 400
LEAST_LINES = 3
ALIKE = 6
_RULE = re.compile(
    r"^\s{0,8}(\S)\1{20,}\s{0,400}$|^\s{0,8}[|+\u2502\u256d\u2570\u251c]|["
    r"|+\u2502\u256e\u256f\u2524]\s{0,8}$"
)
# The beginnings of new lines.
_BEGINS = re.compile(
    r"\s{2,}|\[rank\d|\[[A-Za-z]{1,12}\d{1,6}\]:|\[(?:default|trainer)|Traceback \(|During"
    r" handling|The above exception|\[?[IWEF]\d{3,4} \d\d:|\[[EWIF]"
    r" |\[?\d{4}[-/]\d\d[-/]\d\d|\S{1,80}:\d{1,9}:\d{1,9} \[\d|frame #|\d{1,3}%\||\S{0,60}Error:"
    r" |srun: |slurmstepd: "
)


def wrap_width(lines: Sequence[str]) -> int:
    """Return the width at which the lines of a text were wrapped, 0 if they were not. `lines` have
    their trailing blanks, but no ends of line.

    No line of a wrapped text is wider, and many of that width continue in the middle of a word or
    sentence.
    """
    by_width: dict[int, list[str]] = {}
    for line in lines:
        by_width.setdefault(len(line), []).append(line)
    texts: dict[int, int] = {}  # lines of text, by width, down to the widest such line
    for width in sorted(by_width, reverse=True):
        texts[width] = sum(
            bool(line.strip()) and not _RULE.search(line[: MOST_WIDTH + 1])
            for line in by_width[width]
        )
        if texts[width]:
            break
    widest = min(texts, default=0)
    if (
        not texts.get(widest)
        or not LEAST_WIDTH <= widest <= MOST_WIDTH
        or texts[widest] < LEAST_LINES
    ):
        return 0
    counts = {widest: texts[widest]}
    for width in range(widest - 3, widest):
        counts[width] = sum(
            bool(line.strip()) and not _RULE.search(line) for line in by_width.get(width, ())
        )
    full = [
        place for place, line in enumerate(lines) if len(line) == widest and not _RULE.search(line)
    ]
    going_on = sum(
        place + 1 < len(lines) and continues(lines[place], lines[place + 1], widest)
        for place in full
    )
    alone = counts[widest] >= LEAST_LINES and counts[widest] > 2 * max(
        counts[width] for width in range(widest - 3, widest)
    )
    return widest if alone and going_on >= max(LEAST_LINES - 1, len(full) // 3) else 0


def continues(line: str, following: str, width: int) -> bool:
    """Whether `following` continues `line` in a text that was wrapped at `width`."""
    if not width or len(line) != width or line.endswith("  ") or not following.strip():
        return False
    if line[:ALIKE] == following[:ALIKE]:  # two rows of a table of progress
        return False
    return (
        _BEGINS.match(following) is None
        and _RULE.search(line) is None
        and _RULE.search(following[: MOST_WIDTH + 1]) is None
    )


def rejoined(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return (the number of its first line, from 1; the whole line) for every line of a text."""
    width = wrap_width(lines)
    whole: list[tuple[int, str]] = []
    before = ""
    for number, line in enumerate(lines, 1):
        if whole and continues(before, line, width):
            whole[-1] = (whole[-1][0], whole[-1][1] + line)
        else:
            whole.append((number, line))
        before = line
    return whole
