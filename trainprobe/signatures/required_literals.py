"""The literal texts of which every match of a regular expression contains one."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

_TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<repeat>[?*]|\{[\d,]+\})"
    r"|(?P<open>\()|(?P<close>\))|(?P<other>[.^$+|])|(?P<text>.)",
    re.DOTALL,
)
_EDGES = " '\"()[]<>{}:;,=`#."


@functools.cache
def required_literals(pattern: str) -> tuple[str, ...]:
    """Return the longest text of each alternative, without spaces and punctuation at its ends.

    It is empty where an alternative has no such text, or where `pattern` ignores case. What stands
    in parentheses may be optional and is left out.
    """
    alternatives, depth = [[""]], 0
    for token in _TOKEN.finditer(pattern):
        kind, text, runs = token.lastgroup, token[0], alternatives[-1]
        depth += (kind == "open") - (kind == "close")
        if text == "|" and depth == 0:
            alternatives.append([""])
        elif depth:
            runs.append("")
        elif kind == "text" or (kind == "escape" and not text[1].isalnum()):
            runs[-1] += text[-1]
        else:
            if kind == "repeat":
                runs[-1] = runs[-1][:-1]  # the repetition may be none
            runs.append("")
    found = tuple(max((run.strip(_EDGES) for run in runs), key=len) for runs in alternatives)
    return tuple(dict.fromkeys(found)) if all(found) and "(?i" not in pattern else ()


_PART = re.compile(
    r"(?P<open>\((?:\?(?:P<\w+>|[a-zA-Z]+:|[a-zA-Z]+\)|<?[=!]|:))?)|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<repeat>[?*+]\??|\{[\d,]+\}\??)|(?P<text>\\[^\w\s]|[^\\\[\]^$.{}])"
    r"|(?P<other>\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.)",
    re.DOTALL,
)
_MAY_BE_NONE = ("?", "*", "{0", "{,")
_LOOKS = ("(?=", "(?!", "(?<=", "(?<!")
Texts = tuple[str, ...]  # of which one is needed; empty where nothing is


@functools.cache
def small_literals(pattern: str) -> Texts:
    """Return texts in small letters of which every match contains one once it is put into small
    letters; empty where there are none. Other than by `required_literals`, groups are looked into,
    and letters may be of any case.
    """
    parts = [(match.lastgroup or "", match[0]) for match in _PART.finditer(pattern)]
    found, end = _alternatives(parts, 0)
    assert end == len(parts), pattern
    return found


def _alternatives(parts: Sequence[tuple[str, str]], at: int) -> tuple[Texts, int]:
    """The best texts of the alternatives up to where their group closes, and where that is."""
    choices: list[Texts] = []
    run, ways = "", list[Texts]()
    while True:
        kind, text = parts[at] if at < len(parts) else ("close", "")
        after = parts[at + 1] if at + 1 < len(parts) else ("", "")
        optional = after[0] == "repeat" and after[1].startswith(_MAY_BE_NONE)
        if kind == "text" and not optional:
            run += text[-1].lower()
            if after[0] == "text":
                at += 1
                continue
        if run:
            ways.append((run,))
            run = ""
        if kind in ("bar", "close"):
            choices.append(max(ways, key=_worth, default=()))
            ways = []
            if kind == "close":
                return (() if () in choices else tuple(dict.fromkeys(sum(choices, ())))), at
        elif kind == "open" and not text.endswith(")"):
            inner, at = _alternatives(parts, at + 1)
            after = parts[at + 1] if at + 1 < len(parts) else ("", "")
            optional = after[0] == "repeat" and after[1].startswith(_MAY_BE_NONE)
            if inner and not optional and not text.startswith(_LOOKS):
                ways.append(inner)
        at += 1


def _worth(texts: Texts) -> tuple[int, int]:
    return min(map(len, texts)), -len(texts)
