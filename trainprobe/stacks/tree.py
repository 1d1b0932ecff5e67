"""Stacks of many ranks as one: equal stacks as classes, and the prefix tree of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trainprobe.stacks.frames import Frame


def classes(
    stacks: Mapping[int, Sequence[Frame]],
) -> tuple[tuple[tuple[int, ...], tuple[Frame, ...]], ...]:
    """Ranks with the same stack together, the larger sets first. Folders of files are not
    compared: they differ between containers.
    """
    by_stack: dict[tuple[tuple[str, str, int], ...], list[int]] = {}
    for rank in sorted(stacks):
        by_stack.setdefault(_key(stacks[rank]), []).append(rank)
    found = [(tuple(ranks), tuple(stacks[ranks[0]])) for ranks in by_stack.values()]
    return tuple(sorted(found, key=lambda pair: (-len(pair[0]), pair[0])))


@dataclass
class Branch:
    """A frame with the ranks whose stacks run through it, and what they called next."""

    frame: Frame
    ranks: list[int] = field(default_factory=list)
    next: list[Branch] = field(default_factory=list)


def prefix_tree(stacks: Mapping[int, Sequence[Frame]]) -> list[Branch]:
    """Merge stacks (outermost first) from the outermost frame on, as STAT does."""
    roots: list[Branch] = []
    known: dict[
        tuple[int, str, str, int], Branch
    ] = {}  # by the list that it stands in: of thousands of ranks many may differ
    for rank in sorted(stacks):
        level = roots
        for frame in stacks[rank]:
            key = (id(level), frame.name, frame.base, frame.line)
            branch = known.get(key)
            if branch is None:
                branch = known[key] = Branch(frame)
                level.append(branch)
            branch.ranks.append(rank)
            level = branch.next
    return roots


def _key(frames: Sequence[Frame]) -> tuple[tuple[str, str, int], ...]:
    return tuple((frame.name, frame.base, frame.line) for frame in frames)
