"""What stands before some wording on its line and takes its meaning: the level that a logger gives,
or a word that denies it.
"""

from __future__ import annotations

import re

HEAD = 400
_INFORMS = re.compile(r"\b(?:INFO|DEBUG|TRACE)\b")
# "no Xid", "without any OOM": whoever looked for it found none
_DENIES = re.compile(
    r"(?i)\b(?:no|without|not any|not a single|neither|nor)(?: (?:any|single|sign of|trace of))?"
    r" (?:an? )?(?:[\"`«“][^\"`»”]{0,60})?$"
)
_BELIED = re.compile(r"(?i)(?<!dl)error|exception|fatal|fail")
# torchvision, bitsandbytes, apex and others go on without the part that they could not load
_GOES_WITHOUT = re.compile(
    r"Warning: (?i:failed|unable|could not|cannot|can't)(?: to)? (?i:load|import|find)\b"
)


def only_informs(before: str) -> bool:
    """Whether the text before some wording is the head of a line that tells of no failure: NCCL
    tries plugins that are not there, says so, and goes on without them; so does who warns that
    some part could not be loaded.
    """
    if _GOES_WITHOUT.search(before[:HEAD]) is not None:
        return True
    level = _INFORMS.search(before[:HEAD])
    return level is not None and _BELIED.search(before, level.end()) is None


def denied(before: str) -> bool:
    """Whether the text before some wording says that it was not there."""
    return _DENIES.search(before[-HEAD:]) is not None
