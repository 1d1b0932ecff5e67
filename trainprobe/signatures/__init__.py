"""Patterns of log lines, kept as data in the YAML files of this folder, and the search for them.

A pattern is tried only on lines that hold its literal text `has`, so that a search through megabytes costs little.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

LINE_CAP = 2000  # characters of a line that a pattern gets to see, around its literal text
COUNT_CAP = 10_000
EACH_CAP = 64


@dataclass(frozen=True)
class Signature:
    """`has` is a text that the line must contain, `regex` what it must then match. `stream` is stdout, stderr or any.

    `shows` is the name of what the line tells of, shared by several wordings. `echo` is true for what only repeats another rank's
    end. With `each`, every matching line is its own hit, not only the first one. `source` says where the wording comes from.
    """

    id: str
    has: str
    regex: re.Pattern[str]
    shows: str
    stream: str = "any"
    echo: bool = False
    each: bool = False
    source: str = ""


@dataclass(frozen=True)
class Hit:
    """`line` is the first line that matched, `count` how many held it, `captured` the named groups of that first line."""

    signature: Signature
    line: str
    count: int
    captured: Mapping[str, str]


@functools.lru_cache(maxsize=1)
def all_signatures() -> tuple[Signature, ...]:
    """Read every YAML file of this folder, in the order of their names."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: list[Signature] = []
    for file in sorted(resources.files(__name__).iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".yaml"):
            found += [_signature(row) for row in yaml.load(file.read_text(encoding="utf-8"), Loader=loader)]  # noqa: S506 - a safe loader either way
    return tuple(found)


def _signature(row: Mapping[str, Any]) -> Signature:
    return Signature(**{**row, "regex": re.compile(row["regex"])})


def find(text: str, stream: str = "any") -> list[Hit]:
    """Return the hits in `text`, in the order of the signatures."""
    hits: list[Hit] = []
    for signature in all_signatures():
        if signature.stream in ("any", stream) or stream not in ("stdout", "stderr"):
            hits += _hits(signature, text)
    return hits


def _hits(signature: Signature, text: str) -> list[Hit]:
    hits: list[Hit] = []
    count = tries = 0
    at = text.find(signature.has)
    while at >= 0 and tries < COUNT_CAP:
        tries += 1
        begin = max(text.rfind("\n", 0, at) + 1, at - LINE_CAP // 2)
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[begin : min(end, begin + LINE_CAP)]
        match = signature.regex.search(line)
        if match is not None:
            count += 1
            if count == 1 or (signature.each and count <= EACH_CAP):
                captured = {name: value for name, value in match.groupdict().items() if value is not None}
                hits.append(Hit(signature, line.strip(), 1, captured))
        at = text.find(signature.has, end)
    if hits and not signature.each:
        hits[0] = Hit(signature, hits[0].line, count, hits[0].captured)
    return hits
