"""The prefix tree of many ranks' stacks as a reader wants it: the user's frames, and the library
call in which each stack ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainprobe.model.diagnosis import StackBranch
from trainprobe.model.ranks import fold_ranks
from trainprobe.stacks import places
from trainprobe.stacks.classify import WRAPPERS, deciding_frame
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.tree import Branch, prefix_tree

# A deep recursion of the user's: its middle tells nothing, and the tree is walked by recursion of
# our own.
OUTERMOST, INNERMOST = 60, 40


def folded(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The user's own frames, and the one that decides what the stack waits for: torch's way
    there is left out. Without user frames the last three.
    """
    kept = [frame for frame in frames if places.is_user(frame)]
    if not kept:
        return tuple(frame for frame in frames if frame.name not in WRAPPERS)[-3:]
    leaf = deciding_frame(frames)
    return (*kept, leaf) if leaf is not None and leaf not in kept else tuple(kept)


def tree_of(stacks: Mapping[int, Sequence[Frame]]) -> tuple[StackBranch, ...]:
    """The tree of folded stacks; `stacks` holds one by rank, outermost frame first."""
    return tuple(
        _branch(branch)
        for branch in prefix_tree(
            {rank: _shallow(folded(frames)) for rank, frames in stacks.items()}
        )
    )


def _shallow(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    return (
        frames
        if len(frames) <= OUTERMOST + INNERMOST
        else (*frames[:OUTERMOST], *frames[-INNERMOST:])
    )


def _branch(branch: Branch) -> StackBranch:
    return StackBranch(
        fold_ranks(branch.ranks), branch.frame.where, tuple(_branch(each) for each in branch.next)
    )
