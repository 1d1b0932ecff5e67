"""The literal texts of which every match of a regular expression contains one."""

from __future__ import annotations

import functools
import re

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
