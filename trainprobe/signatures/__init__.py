r"""Patterns of log lines, kept as data in the YAML files of this folder, and the search for them.

A pattern is tried only on lines that hold one of its literal texts `has`, so that a search through
gigabytes costs little. Each row:

    - id: watchdog-timeout            # unique
      has: 'Watchdog caught'          # a literal text of the line, or a list of them, of which one must be there;
                                      # without it the longest of each alternative of the regex
      regex: '…(?P<seq>\d{1,12})…'    # what the line must then match, by search; every repetition is bounded; named groups are kept
      shows: collective-timeout       # the typed event; several wordings share one
      means: echo                     # fatal | echo | sign (the default)
      source: 'torch 2.1 to 2.13, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp'
      example: 'one line that it matches, written for this project'
      not: ['lines that look alike and must not match']
"""  # noqa: E501

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from trainprobe.shipped import read_yaml
from trainprobe.signatures.required_literals import required_literals

LINE_CAP = 2000  # characters of a line that a pattern gets to see, around its literal text
COUNT_CAP = 10_000
EACH_CAP = 64
Meaning = Literal["fatal", "echo", "sign"]


@dataclass(frozen=True)
class Signature:
    """`has` are literal texts of which a line must contain one, `pattern` is what it must then
    match. `stream` is stdout, stderr or any.

    `shows` is the name of what the line tells of, shared by several wordings. `means`: whoever
    printed a `fatal` line has failed, an
    `echo` only repeats another rank's end, a `sign` says something that may help. With `each`,
    every matching line is its own hit, not only the first one. `source` says where the wording
    comes from (project, file, versions), `example` is a line that matches, `unlike` are lines that
    must not.
    """

    id: str
    has: tuple[str, ...]
    pattern: str
    shows: str
    stream: str = "any"
    means: Meaning = "sign"
    each: bool = False
    source: str = ""
    example: str = ""
    unlike: tuple[str, ...] = ()

    @functools.cached_property
    def regex(self) -> re.Pattern[str]:
        """`pattern`, compiled when a line holds a literal text: few are needed at a time."""
        return re.compile(self.pattern)

    @property
    def echo(self) -> bool:
        return self.means == "echo"


@dataclass(frozen=True)
class Hit:
    """`line` is the first line that matched, `count` how many held it, `captured` the named
    groups of that first line.
    """

    signature: Signature
    line: str
    count: int
    captured: Mapping[str, str]


@functools.lru_cache(maxsize=1)
def all_signatures() -> tuple[Signature, ...]:
    """Read every YAML file of this folder, in the order of their names."""
    found: list[Signature] = []
    for file in sorted(resources.files(__name__).iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".yaml"):
            found += map(_signature, read_yaml(file.read_text(encoding="utf-8")))
    return tuple(found)


@functools.lru_cache(maxsize=1)
def literals() -> tuple[str, ...]:
    """Every literal text of all signatures, each once."""
    return tuple(dict.fromkeys(text for signature in all_signatures() for text in signature.has))


def _signature(row: Mapping[str, Any]) -> Signature:
    has = row.get("has") or required_literals(row["regex"])
    if min((len(text) for text in ((has,) if isinstance(has, str) else has)), default=0) < 4:
        raise ValueError(f"The signature {row['id']} needs longer literal texts: has.")
    rest = {name: value for name, value in row.items() if name not in ("has", "regex", "not")}
    return Signature(
        has=(has,) if isinstance(has, str) else tuple(has),
        pattern=row["regex"],
        unlike=tuple(row.get("not", ())),
        **rest,
    )


def match_line(line: str, shows: frozenset[str] | None = None) -> list[Hit]:
    """Return the hits in one line, in the order of the signatures; with `shows` only of those
    that show one of these events.
    """
    hits = []
    for signature in all_signatures() if shows is None else _showing(shows):
        at = next((place for text in signature.has if (place := line.find(text)) >= 0), -1)
        if at >= 0:
            begin = max(0, at - LINE_CAP // 2)
            part = line[begin : begin + LINE_CAP]
            match = signature.regex.search(part)
            if match is not None:
                hits.append(Hit(signature, part.strip(), 1, captured_groups(match)))
    return hits


@functools.lru_cache(maxsize=16)
def _showing(shows: frozenset[str]) -> tuple[Signature, ...]:
    return tuple(signature for signature in all_signatures() if signature.shows in shows)


def find(text: str, stream: str = "any") -> list[Hit]:
    """Return the hits in `text`, in the order of the signatures."""
    hits: list[Hit] = []
    for signature in all_signatures():
        if signature.stream in ("any", stream) or stream not in ("stdout", "stderr"):
            hits += _hits(signature, text)
    return hits


def captured_groups(match: re.Match[str]) -> dict[str, str]:
    """The named groups that took part in the match."""
    return {name: value for name, value in match.groupdict().items() if value is not None}


def _hits(signature: Signature, text: str) -> list[Hit]:
    hits: list[Hit] = []
    count = tries = 0
    places = {literal: text.find(literal) for literal in signature.has}
    while tries < COUNT_CAP:
        at = min((place for place in places.values() if place >= 0), default=-1)
        if at < 0:
            break
        tries += 1
        begin = max(text.rfind("\n", 0, at) + 1, at - LINE_CAP // 2)
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[begin : min(end, begin + LINE_CAP)]
        match = signature.regex.search(line)
        if match is not None:
            count += 1
            if count == 1 or (signature.each and count <= EACH_CAP):
                hits.append(Hit(signature, line.strip(), 1, captured_groups(match)))
        places = {
            literal: text.find(literal, end) if 0 <= place < end else place
            for literal, place in places.items()
        }
    if hits and not signature.each:
        hits[0] = Hit(signature, hits[0].line, count, hits[0].captured)
    return hits
