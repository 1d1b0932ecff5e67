"""`# trainprobe: ignore[id, id]` on a line or the line above it; without ids it waives all."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Mapping

from trainprobe.lint.model import Finding

COMMENT = re.compile(r"#\s*trainprobe:\s*ignore(?:\[([^\]\n]*)\])?", re.IGNORECASE)


def waivers(text: str) -> dict[int, tuple[str, bool]]:
    """The comments that waive findings, by line, and whether they have the line to themselves."""
    if COMMENT.search(text) is None:
        return {}
    found = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and COMMENT.search(token.string):
                found[token.start[0]] = (token.string, not token.line[: token.start[1]].strip())
    except (tokenize.TokenError, SyntaxError, RecursionError):
        pass  # what was found before the tokenizer gave up counts
    return found


def is_ignored(finding: Finding, comments: Mapping[int, tuple[str, bool]]) -> bool:
    """Whether one of the file's `comments`, as `waivers` returns them, waives a finding."""
    for number in (finding.line, finding.line - 1):
        text, alone = comments.get(number, ("", False))
        if number != finding.line and not alone:
            continue  # a comment behind the code above is about that code
        match = COMMENT.search(text)
        if match is not None:
            ids = {part.strip() for part in (match.group(1) or "").split(",") if part.strip()}
            if not ids or finding.id in ids or finding.rule in ids:
                return True
    return False
