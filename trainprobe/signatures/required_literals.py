"""The literal text that every match of a regular expression contains."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<repeat>[?*]|\{[\d,]+\})"
    r"|(?P<open>\()|(?P<close>\))|(?P<other>[.^$+|])|(?P<text>.)",
    re.DOTALL,
)
_EDGES = " '\"()[]<>{}:;,=`#."


def required_literal(pattern: str) -> str:
    """Return the longest such text, without spaces and punctuation at its ends.

    It is empty where `pattern` has alternatives outside of parentheses, or ignores case. What
    stands in parentheses may be optional and is left out.
    """
    if "(?i" in pattern:
        return ""
    runs, depth = [""], 0
    for token in _TOKEN.finditer(pattern):
        kind, text = token.lastgroup, token[0]
        depth += (kind == "open") - (kind == "close")
        if text == "|" and depth == 0:
            return ""
        if depth:
            runs.append("")
        elif kind == "text" or (kind == "escape" and not text[1].isalnum()):
            runs[-1] += text[-1]
        else:
            if kind == "repeat":
                runs[-1] = runs[-1][:-1]  # the repetition may be none
            runs.append("")
    return max((run.strip(_EDGES) for run in runs), key=len)
