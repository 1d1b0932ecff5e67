"""Did a thread go on between looks? Frames of its own code decide, not those of helpers that
poll.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from trainprobe.stacks import places
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.rules import RULES


def moved(looks: Sequence[Sequence[Frame]]) -> bool | None:
    """True when the user's frames or lines changed between any two looks, False when none did, None
    for fewer than two looks.

    `queue.get(timeout=…)`, `Popen.wait` and the like loop while they wait: frames below the last
    one of somebody's own code are left out, and a change of helper alone is no movement. An empty
    stack says nothing and is not compared.
    """
    keys = [own_place(frames) for frames in looks if frames]
    if len(keys) < 2:
        return None
    return any(key != keys[0] for key in keys[1:])


def grew(looks: Sequence[Sequence[Frame]]) -> bool:
    """Whether each stack stands on the one before, as handlers of signals do during a wait."""
    keys = [own_place(frames) for frames in looks if frames]
    return all(later[: len(key)] == key for key, later in zip(keys, keys[1:], strict=False))


def own_place(frames: Sequence[Frame]) -> tuple[tuple[str, str, int], ...]:
    """The stack without the helper frames at its leaf, as something that can be compared.
    Outermost first.
    """
    last = len(frames) - 1
    while last > 0 and _is_helper(frames[last].file, frames[last].name):
        last -= 1
    kept = frames[: last + 1]
    return tuple((frame.name, frame.base, frame.line) for frame in kept)


def is_before(frames: Sequence[Frame], others: Sequence[Frame]) -> bool:
    """Do two threads part in one function, in which the first stands on an earlier line?"""
    for mine, its in zip(frames, others, strict=False):
        if (mine.file, mine.name) != (its.file, its.name):
            return False
        if mine.line != its.line:
            return mine.line < its.line
    return False


@functools.lru_cache(maxsize=16384)
def _is_helper(file: str, name: str) -> bool:
    frame = Frame(name, file)
    if places.is_standard(frame) or places.is_native(frame) or places.is_ours(frame):
        return True
    if places.is_user(frame):
        return False
    last = name.rsplit(".", 1)[-1]
    return any(
        rule.leaf not in ("file-io", "compile") and rule.fits(file, name, last) for rule in RULES
    )
