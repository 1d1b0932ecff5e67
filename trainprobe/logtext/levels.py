"""The level that a logger gives its line."""

from __future__ import annotations

import re

HEAD = 400
_INFORMS = re.compile(r"\b(?:INFO|DEBUG|TRACE)\b")
_BELIED = re.compile(r"(?i)error|exception|fatal|fail")


def only_informs(before: str) -> bool:
    """Whether the text before some wording is the head of a line that tells of no failure: NCCL
    tries plugins that are not there, says so, and goes on without them.
    """
    level = _INFORMS.search(before[:HEAD])
    return level is not None and _BELIED.search(before, level.end()) is None
