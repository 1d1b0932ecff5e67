"""How training code asks which rank it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainprobe.stacks.source import Block

# rank == 0, self.local_rank, is_main_process, accelerator.is_local_main_process, dist.get_rank(),
# trainer.is_global_zero, @rank_zero_only
ASKS_FOR_RANK = re.compile(
    r"(?i)(?<![a-z])(\w*rank|\w*is_(?:\w*_)?(?:main|master|first|last|chief|primary|leader|zero)\w*"
    r"|main_process|(?:local_)?process_index|(?:main|master|primary|leader|chief)_only|procid)"
    r"(?![a-z])"
)


def asks_for_rank(block: Block) -> bool:
    """Is the condition about the rank, in its words or by what gave its names their values?"""
    return ASKS_FOR_RANK.search(block.text) is not None or asks_by_a_name(block)


def asks_by_a_name(block: Block) -> bool:
    """Is it about the rank by what gave its names their values alone?"""
    made = ASKS_FOR_RANK.search(block.made)
    return made is not None and not ASKS_FOR_RANK.search(block.text)
