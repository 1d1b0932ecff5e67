"""Telling the lines of several ranks apart in one stream, by the prefixes that torch and torchrun write."""

from __future__ import annotations

import re
from collections.abc import Iterator

# torch's exception hook writes `[rank3]: ` before each line of a traceback, torchrun's tee writes `[default3]:` before every line.
_PREFIX = re.compile(r"\[(rank|default|trainer|worker)(\d{1,7})\]:[ ]?")


def split_ranks(text: str) -> dict[int | None, list[str]]:
    """Return the lines of each rank without their prefix; None holds the lines that name no rank. Order within a rank is kept."""
    lines: dict[int | None, list[str]] = {}
    for line in text.splitlines():
        rank, rest = strip_prefix(line)
        lines.setdefault(rank, []).append(rest)
    return lines


def strip_prefix(line: str) -> tuple[int | None, str]:
    """Return the rank and the rest. `[rankN]` is the rank of the job and wins over `[roleN]`, which counts per node."""
    rank: int | None = None
    certain = False
    for match in _prefixes(line):
        if match.group(1) == "rank":
            rank, certain = int(match.group(2)), True
        elif not certain:
            rank = int(match.group(2))
        line = line[match.end() :]
    return rank, line


def _prefixes(line: str) -> Iterator[re.Match[str]]:
    for _ in range(3):
        match = _PREFIX.match(line)
        if match is None:
            return
        yield match
        line = line[match.end() :]
