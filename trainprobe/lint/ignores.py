"""`# trainprobe: ignore[id, id]` on a line, or on the line above it; without ids it holds for all."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainprobe.lint.model import Finding

COMMENT = re.compile(r"#\s*trainprobe:\s*ignore(?:\[([^\]\n]*)\])?", re.IGNORECASE)


def is_ignored(finding: Finding, lines: Sequence[str]) -> bool:
    """Whether a comment in the source waives a finding. `lines` are the file's."""
    for number in (finding.line, finding.line - 1):
        if not 1 <= number <= len(lines):
            continue
        line = lines[number - 1]
        if number != finding.line and not line.lstrip().startswith("#"):
            continue  # a comment behind the code above is about that code
        told = COMMENT.search(line)
        if told is not None:
            ids = {one.strip() for one in (told.group(1) or "").split(",") if one.strip()}
            if not ids or finding.id in ids or finding.rule in ids:
                return True
    return False
