"""Streams that several ranks write into, taken apart by the prefixes of their lines."""

from __future__ import annotations

import functools
import re

from trainprobe.logtext.plain import plain_states
from trainprobe.logtext.prefixes import NO_LABELS, Labels, learn_labels, read_prefixes

SAMPLE_LINES = 1000
# What torchrun's tee, and torch's exception hook, write before nearly all lines.
_TEE = re.compile(r"(?:\[(?:default|trainer|worker)(\d{1,7})\]:[ ]?)?(?:\[rank(\d{1,7})\]:[ ]?)?")


def rank_and_rest(
    line: str, labels: Labels = NO_LABELS, *, shared: bool = True
) -> tuple[int | None, str]:
    """The rank that wrote a line, None where it names none, and the line without prefixes.

    In a stream that is not `shared` only a prefix that names the job's rank counts: a local number
    or a rank in the text is no other process.
    """
    match = _TEE.match(line)
    if match is not None and match.end() and line[match.end() : match.end() + 1] != "[":
        rank = match.group(2) or (match.group(1) if shared else None)
        return int(rank) if rank else None, line[match.end() :]
    found = read_prefixes(line, labels)
    return found.rank if shared or found.certain else None, found.rest


@functools.lru_cache(maxsize=1)  # each parser of a record asks for the same
def split_ranks(text: str, *, shared: bool = True) -> dict[int | None, list[str]]:
    """The plain lines of each rank in a text, in order and without prefixes; None holds the lines
    that name no rank.
    """
    lines = [part for line in text.splitlines() for part in plain_states(line)]
    labels = learn_labels(lines[:SAMPLE_LINES])
    found: dict[int | None, list[str]] = {}
    for line in lines:
        rank, rest = rank_and_rest(line, labels, shared=shared)
        found.setdefault(rank, []).append(rest)
    return found
