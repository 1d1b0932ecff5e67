"""Which ranks have left a loop over data in which the others still are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from trainprobe.causes.diverging_calls import (
    Place,
    camps,
    holds_for_few,
    own_blocks,
    places,
    rank_block,
    ways_out,
)
from trainprobe.causes.locks_wanted import holders
from trainprobe.causes.parting_values import PartedValue, behind, passes_made
from trainprobe.causes.scene import Scene, first_found
from trainprobe.facts import Block, Skip
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user
from trainprobe.stacks.rank_conditions import asks_for_rank

Stack = tuple[Frame, ...]
# Loops that have the same length on all ranks: counting, and walking over the model. Loops over
# data need not.
OWN_LENGTH = re.compile(
    r"range\(|parameters\(|modules\(|buffers\(|children\(|param_groups|state_dict"
)

_OVER_DATA = re.compile(r"(?i)load|data|batch|iter|sampl|shard|stream|line|enumerate")
_COUNTS_ITEMS = re.compile(r"\brange\(.*\blen\(")

# Conditions that count, and so hold on all ranks in the same passes: steps already done at a
# restart, every n-th step, the last step allowed.
COUNTS = re.compile(
    r"(?i)%|\b(\w*step\w*|\w*epoch\w*|\w*_?idx|i|n|it|iteration|resume\w*|start\w*)\b\s*(?:[<>]=?"
    r"|==|!=)\s*[\w.]+\s*:?$"
)

# Conditions that hold on all ranks or on none: settings, what exists, whether there are others.
_ALIKE = re.compile(
    r"(?i)\b(?:\w*args|\w*cfg|\w*config\w*|opts?|options|flags|hparams|hps|params)\b"
    r"|\bis (?:not )?None\b|hasattr\(|isinstance\(|callable\(|is_initialized|is_available"
    r"|\bis_dist\w*|distributed|\buse_(?:ddp|dist\w*)|world_size|num_processes|nprocs|__name__|(?-i:\b[A-Z][A-Z_]{2,}\b)"
)

_WHETHER_OTHERS = re.compile(
    r"(?i)is_initialized|is_available|\bis_dist\w*|distributed|world_size|num_processes|nprocs"
)
_OUT_OF_DATA = re.compile(r"StopIteration|Empty\b|EOFError|IndexError")


def may_be_missed(scene: Scene, out: Sequence[int]) -> Block | None:
    """The condition over the call of these ranks alone that need not hold on all ranks: then those
    who are still in a loop above it may have passed it by.
    """
    found = places(scene)
    conditions = (*own_blocks(scene, found, out), *ways_out(scene, found, out))
    return next(
        (
            block
            for block in reversed(conditions)
            if not COUNTS.search(block.text) and not _ALIKE.search(block.text)
        ),
        None,
    )


def asks_for_others(block: Block) -> bool:
    """Does the condition only ask whether there are other ranks? All of them answer alike."""
    return _WHETHER_OTHERS.search(block.text) is not None


def step_skipped(scene: Scene, out: Sequence[int]) -> Skip | None:
    """The `continue` above the others' collective, in the loop that these ranks have left, by which
    a rank may leave out one step and its collectives.

    None where there is none, where it only counts (then all ranks skip alike), and in cases
    recorded before skips were read.
    """
    loop = loop_left(scene, out)
    if loop is None or passed_by(scene, out, loop):
        return None
    frames = [frame for place in places_of_rest(scene, out) for frame in place.frames]
    found = [
        skip
        for site in scene.sites(frames)
        for skip in site.skips
        if (skip.loop, skip.how) == (loop.line, "continue")
    ]
    return next((skip for skip in reversed(found) if not COUNTS.search(skip.text)), None)


def left_by(scene: Scene, out: Sequence[int], loop: Block | None) -> Skip | None:
    """The `break` or `return` by which these ranks may have left the loop of the others before its
    end; None where there is none that can differ between ranks, or only the end of the data.
    """
    if loop is None:
        return None
    frames = [frame for place in places_of_rest(scene, out) for frame in place.frames]
    return first_found(
        skip
        for site in scene.sites(frames)
        for skip in (*site.exits, *site.skips)
        if skip.loop == loop.line
        and skip.how in ("break", "return")
        and not COUNTS.search(skip.text)
        and not _ALIKE.search(skip.text)
        and not _OUT_OF_DATA.search(skip.text)
    )


def steps_ahead(scene: Scene) -> tuple[tuple[int, ...], Skip | None]:
    """The ranks that are behind the loop while all others are in it, with the `continue` that
    may have brought them there; none of both where there is none.
    """
    out = out_of_loop(scene)
    skip = step_skipped(scene, out) if out and len(out) < len(scene.world) else None
    return (out, skip) if skip is not None else ((), None)


def returned_before(scene: Scene, out: Sequence[int]) -> tuple[Frame, Skip] | None:
    """The `if …: return` above the others' collective, in a function that these ranks are not in,
    by which one call of it may leave the collective out; None where there is none.
    """
    found = places(scene)
    mine = {
        (frame.file, frame.name) for rank in out if rank in found for frame in found[rank].frames
    }
    for place in places_of_rest(scene, out)[:1]:
        for frame in filter(is_user, reversed(place.frames)):  # any call goes through torch's own
            if (frame.file, frame.name) in mine:
                return None
            for site in scene.sites([frame]):
                for skip in reversed(site.skips):
                    if skip.how == "return" and not COUNTS.search(skip.text):
                        return frame, skip
    return None


def out_of_loop(scene: Scene) -> tuple[int, ...]:
    """The ranks that have left a loop over data in which all the rest still are: the suspects,
    or another camp, where only the suspects or both stand out. A suspect that lives and has come to
    no collective parts the others, not the loop.
    """
    found = places(scene)
    if any(rank not in found and scene.thread(rank) is not None for rank in scene.ranks):
        return scene.ranks
    for side in (scene.ranks, scene.others, *camps(found)):
        inside = frozenset(side)
        rest = [rank for rank in found if rank not in inside]
        loop = (
            loop_left(scene, side)
            if side and rest and all(rank in found for rank in side)
            else None
        )
        if loop is None or not over_data(scene, loop) or not is_behind(scene, side, loop):
            continue
        if all(any(_holds(scene, frame, loop) for frame in found[rank].frames) for rank in rest):
            return tuple(side)
    return scene.ranks


def passed_by(scene: Scene, out: Sequence[int], loop: Block | None) -> PartedValue | None:
    """The loop around all ranks of which these are in an earlier pass, None where there is none:
    then they have not left `loop`, in which the others are, but the others went by them.
    """
    late = behind(scene)
    if late is None or loop is None or set(late.ranks) != set(out):
        return None
    return late.apart if late.apart.header != (loop.line, loop.text) else None


def left_a_loop(scene: Scene) -> tuple[tuple[int, ...], Block | None]:
    """The camp that alone stands below a loop of any kind, in a function in which all the rest are
    still inside it, and that loop: it has left it first, for whatever reason. No camp where a
    condition on the rank tells who comes where. Found once for a scene.
    """
    if left_a_loop not in scene.found:
        scene.found[left_a_loop] = _left_a_loop(scene)
    known: tuple[tuple[int, ...], Block | None] = scene.found[left_a_loop]
    return known


def _left_a_loop(scene: Scene) -> tuple[tuple[int, ...], Block | None]:
    found, left = places(scene), []
    if any(rank_block(scene, found, side) is not None for side in camps(found)):
        return (), None
    for side in camps(found):
        # of thousands of ranks most have the same stack
        mine = dict.fromkeys(found[rank].frames for rank in side)
        rest = dict.fromkeys(place.frames for place in places_of_rest(scene, side))
        loops = [_loop_between(scene, one, other) for one in mine for other in rest]
        if loops and all(loop and not passed_by(scene, side, loop) for loop in loops):
            left.append((side, loops[0]))
    return left[0] if len(left) == 1 else ((), None)


def _loop_between(scene: Scene, stack: Stack, other: Stack) -> Block | None:
    """The outermost loop that only the other is in, where this one stands further down."""
    at = _further_down(stack, other)
    if at is None:
        return None
    around = {
        (one.line, one.text) for site in scene.sites(stack[at : at + 1]) for one in site.blocks
    }
    return first_found(
        one
        for site in scene.sites(other[at : at + 1])
        for one in site.blocks
        if one.kind in ("for", "while")
        and one.branch == "body"
        and (one.line, one.text) not in around
    )


def places_of_rest(scene: Scene, out: Sequence[int]) -> list[Place]:
    """The places of the ranks that are not among `out`."""
    outside = frozenset(out)
    return [place for rank, place in places(scene).items() if rank not in outside]


def loop_left(scene: Scene, out: Sequence[int]) -> Block | None:
    """The `for` loop that the others' collective is in and these ranks are not; None where only
    some ranks ever come into it (`if rank == 0: evaluate(model)`): then nobody has left it.
    """
    found = places(scene)
    mine = {
        (block.line, block.text)
        for rank in out
        if rank in found
        for block in _loops(scene, found[rank].frames)
    }
    theirs = [
        block
        for place in places_of_rest(scene, out)
        for block in _loops(scene, place.frames)
        if (block.line, block.text) not in mine
    ]
    left = [loop for loop in reversed(theirs) if not _of_some_ranks(scene, out, loop)]
    # further in, the model may go through its own parts
    data = (one for one in left if _OVER_DATA.search(one.text) and is_behind(scene, out, one))
    return next(data, left[0] if left else None)


def _of_some_ranks(scene: Scene, out: Sequence[int], loop: Block) -> bool:
    """Does the others' way into the loop stand under a condition on the rank that is not over the
    calls of these ranks too?
    """
    found = dict(places(scene))
    inside = []
    for place in places_of_rest(scene, out):
        depth = next((n for n, one in enumerate(place.frames) if _holds(scene, one, loop)), None)
        if depth is not None:
            found[place.rank] = replace(place, frames=place.frames[: depth + 1])
            inside.append(place.rank)
    conditions = (*own_blocks(scene, found, inside), *ways_out(scene, found, inside))
    within = {
        line
        for site in scene.sites(found[inside[0]].frames[-1:])
        for line in (*(one.line for one in site.blocks), *(one.line for one in site.skips))
        if line >= loop.line  # what a loop goes through may well be the rank's own part
    }
    return any(asks_for_rank(block) and block.line not in within for block in conditions)


def _loops(scene: Scene, frames: tuple[Frame, ...]) -> list[Block]:
    sites = scene.sites(frames)
    return [
        block
        for site in sites
        for block in site.blocks
        if block.kind == "for"
        and block.branch == "body"
        and (not OWN_LENGTH.search(block.text) or _of_unlike_length(scene, block))
    ]


def over_data(scene: Scene, loop: Block) -> bool:
    """Is it a loop over what need not be equally much on all ranks?"""
    return _OVER_DATA.search(loop.text) is not None or _of_unlike_length(scene, loop)


def _of_unlike_length(scene: Scene, loop: Block) -> bool:
    """Does it count the items of something, and have the ranks come to different numbers?"""
    counts_items = _COUNTS_ITEMS.search(loop.text) is not None
    return counts_items and passes_made(scene, loop) is not None


def is_behind(scene: Scene, out: Sequence[int], loop: Block) -> bool:
    """Do all of them stand further down in the function of the loop, or of the one from which the
    others came there, under no `if` on the rank?
    """
    found = places(scene)
    mine = [found[rank] for rank in out if rank in found]
    theirs = {
        (frame.file, frame.name)
        for place in places_of_rest(scene, out)
        for frame in place.frames
        if _holds(scene, frame, loop)
    }
    rest = places_of_rest(scene, out)
    below = all(
        any((frame.file, frame.name) in theirs and frame.line > loop.line for frame in place.frames)
        or all(_is_past(scene, place, other, loop) for other in rest)
        for place in mine
    )
    return bool(mine) and below and rank_block(scene, found, tuple(out)) is None


def went_past(scene: Scene) -> tuple[tuple[int, ...], Block | None]:
    """Who waits in a call under a condition on the rank while all other ranks stand, in no call,
    further down in the function that holds the condition: they have gone past it. With that
    condition; nobody and None where it is not so.
    """
    found = places(scene)
    out = tuple(sorted(found))
    rest = [thread for thread in scene.threads(scene.world) if thread.rank not in found]
    if len(camps(found)) != 1 or not rest or len(out) + len(rest) < len(scene.world):
        return (), None
    block = rank_block(scene, found, out)
    if block is None or not holds_for_few(block) or _locks_out(scene, out):
        return (), None
    waits = found[out[0]].frames
    for thread in rest:
        at = _further_down(thread.frames, waits)
        under = at is not None and _holds(scene, waits[at], block)
        if at is None or not under or _holds(scene, thread.frames[at], block):
            return (), None
    return out, block


def _locks_out(scene: Scene, ranks: Sequence[int]) -> bool:
    """Do others want a lock that one of these holds? Then nobody knows where they would have come
    without it.
    """
    known = holders(scene)
    processes = [scene.process(rank) for rank in ranks]
    return any(process is not None and process.pid in known for process in processes)


def _is_past(scene: Scene, place: Place, other: Place, loop: Block) -> bool:
    """Where the ways of the two part, does this one stand further down in the same function, and
    has the other gone into the loop from there?
    """
    at = _further_down(place.frames, other.frames)
    return at is not None and any(_holds(scene, frame, loop) for frame in other.frames[at:])


def _further_down(stack: Stack, other: Stack) -> int | None:
    """The frame at which the two part, where that is in one function in which this one stands
    further down.
    """
    for at, (mine, theirs) in enumerate(zip(stack, other, strict=False)):
        if mine != theirs:
            same = (mine.file, mine.name) == (theirs.file, theirs.name)
            return at if same and mine.line > theirs.line else None
    return None


def _holds(scene: Scene, frame: Frame, loop: Block) -> bool:
    return any(
        (block.line, block.text) == (loop.line, loop.text)
        for site in scene.sites([frame])
        for block in site.blocks
    )
