"""Does a loop get anywhere? By its values, read again and again: where it does, some move on and do
not come back. Where all that change come back, it goes round; and where many change, but not what
its head counts (`while len(batch) < size:`), it comes no nearer to its end. The same where a sample
is made in a `while` and nothing changes at all, from line to line of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainprobe.facts import LoopValue
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.parting_names import targets_of
from trainprobe.waits.loops import Sites, loop_of, loops_of, own_frames

READS = 8  # of fewer, a value that comes back may do so by chance
STILL_READS = 16  # in which no value of a sample in the making changes
RETURNS = 2
FLICKERS = 4
PASSES = 5
FEW = 4  # reads for each value
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass(frozen=True)
class Circle:
    """Why a loop never ends, as a clause, with the values that show it."""

    says: str
    values: tuple[LoopValue, ...]


def circle_of(
    values: Sequence[LoopValue],
    looks: Sequence[Sequence[Frame]],
    sites: Sites,
    *,
    makes_a_sample: bool = False,
) -> Circle | None:
    """What these reads of one thread say of its loop; None where it may get on, or where they do
    not tell. `makes_a_sample`: it is a loader worker.
    """
    if not values or values[0].reads < READS:
        return None
    found = _stands_still(values, looks, sites)
    found = found or _comes_back(values, looks, sites, makes_a_sample=makes_a_sample)
    return found or (_nothing_changes(values, looks, sites) if makes_a_sample else None)


def moves_on(values: Sequence[LoopValue]) -> LoopValue | None:
    """A value that changed and never came back, the outermost first. In a function that is called
    again and again, two values may be those of two calls.
    """
    going = [
        one
        for one in values
        if not one.opaque
        and not one.returns
        and len(set(one.seen)) > (1 if len(one.seen) == one.reads else 2)
    ]
    return min(going, key=lambda one: one.depth, default=None)


def in_vain(values: Sequence[LoopValue]) -> LoopValue | None:
    """A value that changed time after time, where none is seen to move on: one that comes back, or
    of which nothing is known. None of too few reads.
    """
    if not values or values[0].reads < READS or moves_on(values) is not None:
        return None
    most = max(values, key=_changes)
    return most if _changes(most) >= PASSES else None


def starts_anew(
    values: Sequence[LoopValue], looks: Sequence[Sequence[Frame]], sites: Sites
) -> LoopValue | None:
    """What `in_vain` returns, where it belongs to a `while` that starts anew each time: no `for`
    inside of that walks over items that nobody knows, since such a walk may have an end.
    """
    value = in_vain(values)
    if value is None:
        return None
    steady = {
        one.name
        for one in values
        if (one.file, one.function) == (value.file, value.function)
        and not one.opaque
        and not one.changes
    }
    for frame in dict.fromkeys(frame for frames in looks for frame in frames):
        site = sites.get((frame.file, frame.line))
        if site is None or (frame.file, frame.name) != (value.file, value.function):
            continue
        kinds = [block.kind for block in site.blocks]
        inner = site.blocks[len(kinds) - kinds[::-1].index("while") :] if "while" in kinds else None
        if inner is not None and all(
            steady.issuperset(targets_of(block.text)) for block in inner if block.kind == "for"
        ):
            return value
    return None


def _stands_still(
    values: Sequence[LoopValue], looks: Sequence[Sequence[Frame]], sites: Sites
) -> Circle | None:
    """The loop makes pass after pass, and what its head counts stays the same."""
    stack = own_frames(next(frames for frames in reversed(looks) if frames)) if looks else ()
    for depth, frame in reversed(list(enumerate(stack))):
        loop = loop_of(frame, sites)
        if loop is None:
            continue
        counted = _counted(loop.text) if loop.kind == "while" else ()
        own = {one.name: one for one in values if one.depth == depth and one.file == frame.file}
        passes = max((_changes(one) for one in own.values()), default=0)
        known = [own[name] for name in counted if name in own]
        if (
            counted
            and len(known) == len(counted)
            and not any(one.opaque or one.changes for one in known)
            and passes >= PASSES
        ):
            says = (
                f"`{loop.text.removeprefix('while ').rstrip(':')}` came no nearer to its end in"
                f" {passes} passes"
            )
            return Circle(says, tuple(known))
        return None
    return None


def _counted(header: str) -> tuple[str, ...]:
    """The names that a `while` compares by size with something: of the side, or sides, that hold
    nothing but names, numbers and len(). () of any other header.
    """
    try:
        (loop,) = ast.parse(f"{header}\n    pass").body
    except (SyntaxError, ValueError):
        return ()
    test = loop.test if isinstance(loop, ast.While) else None
    if not isinstance(test, ast.Compare) or not all(isinstance(op, _ORDERS) for op in test.ops):
        return ()
    sides = [set(_names(side)) for side in (test.left, *test.comparators)]
    return tuple(sorted({name for side in sides if None not in side for name in side if name}))


def _names(side: ast.expr) -> Iterator[str | None]:
    """The names in one side, with None for each part that is more than a name, number or len()."""
    if isinstance(side, ast.Name):
        yield side.id
    elif isinstance(side, ast.BinOp):
        yield from _names(side.left)
        yield from _names(side.right)
    elif isinstance(side, ast.Call) and isinstance(side.func, ast.Name) and side.func.id == "len":
        for part in side.args:
            yield from _names(part)
    elif not isinstance(side, ast.Constant):
        yield None


def _comes_back(
    values: Sequence[LoopValue],
    looks: Sequence[Sequence[Frame]],
    sites: Sites,
    *,
    makes_a_sample: bool,
) -> Circle | None:
    """All that changes comes back. Objects that change, of which nothing is known, may be what gets
    on, as the state of a simulation does; they are let pass where the things come back that a `for`
    loop walks over, and where one sample is made, out of few values.
    """
    if moves_on(values) is not None:
        return None
    back = [value for value in values if not value.opaque and value.returns >= RETURNS]
    if makes_a_sample and any(len(set(one.seen)) <= one.reads / FEW for one in back):
        values = [one for one in values if not one.opaque]
    walked = _walked(looks, sites)
    items = [value for value in back if value.name in walked.get((value.file, value.function), ())]
    hidden = any(value.opaque and value.changes for value in values)
    loops = loops_of(looks, sites)
    if not items and (hidden or not loops or loops[0].kind != "while"):
        return None
    found = max(items or back, key=lambda value: value.returns, default=None)
    if found is None:
        return None
    says = (
        f"`{found.name}` came back to an earlier value {found.returns} times in {found.reads}"
        " reads, and no other value moved on"
    )
    return Circle(says, (found,))


def _nothing_changes(
    values: Sequence[LoopValue], looks: Sequence[Sequence[Frame]], sites: Sites
) -> Circle | None:
    """Line after line of one `while` was seen, and in it no value became another, but for a flicker
    between two of its lines.
    """
    stacks = [own_frames(frames) for frames in looks if frames]
    inner = stacks[-1][-1] if stacks and stacks[-1] else None
    site = sites.get((inner.file, inner.line)) if inner is not None else None
    around = [block.kind for block in site.blocks if block.branch == "body"] if site else []
    if values[0].reads < STILL_READS or "while" not in around:
        return None
    lines = {stack[-1].line for stack in stacks if stack}
    own = [
        one
        for one in values
        if inner is not None
        and (one.file, one.function) == (inner.file, inner.name)
        and len(one.seen) == one.reads
    ]
    flickers = sum(_changes(one) for one in values if one.returns)
    others = [one for one in values if one.changes and not one.returns]
    if len(lines) < 2 or not own or others or flickers > FLICKERS:
        return None
    return Circle(f"none of its values changed in {values[0].reads} reads", tuple(own))


def _changes(value: LoopValue) -> int:
    return sum(before != now for before, now in zip(value.seen, value.seen[1:], strict=False))


def _walked(looks: Sequence[Sequence[Frame]], sites: Sites) -> dict[tuple[str, str], set[str]]:
    """The names that `for` loops around the lines of these stacks walk with, by function."""
    found: dict[tuple[str, str], set[str]] = {}
    for frame in dict.fromkeys(frame for frames in looks for frame in frames):
        site = sites.get((frame.file, frame.line))
        for block in site.blocks if site is not None else ():
            if block.kind == "for":
                found.setdefault((frame.file, frame.name), set()).update(targets_of(block.text))
    return found
