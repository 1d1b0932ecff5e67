"""Ranks run different submodules in one step, and layers that communicate need the same on all.

FSDP and ZeRO gather a layer's parameters from all ranks when the layer runs, and a synchronised
norm or an expert exchanges data. A rank without tokens for an expert, without images in its batch,
or that generates for longer leaves a layer out or runs one more, and its next call meets another
layer's on the other ranks.

It is recognised by ranks that stand below FSDP or ZeRO at different operations, layers or lines in
one step, or in different calls of any layers below one and the same line of their step, and by a
recorder in which the sizes of one collective differ. The same operation below
the same lines on all ranks rules it out. A camp in a call outside of the model (saving, evaluating,
metrics) that the others may have left out is another cause's.

Of a log it is recognised by gathers and reductions of layers (_ALLGATHER_BASE,
_REDUCE_SCATTER_BASE) that differ at one sequence number, and by ZeRO's
"Invalidate trace cache" before a rank gave up in one.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.collective_calls import away, layers_apart, of_divergent_forward
from trainprobe.causes.collective_timeouts import Timeouts
from trainprobe.causes.diverging_calls import (
    Place,
    all_asleep,
    before_the_model,
    holds_for_few,
    own_blocks,
    places,
    rank_block,
)
from trainprobe.causes.early_loop_exits import (
    COUNTS,
    loop_left,
    out_of_loop,
    over_data,
    returned_before,
)
from trainprobe.causes.exception_handlers import out_of_the_step
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, short, verb
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.facts import LogEvent, MainThread
from trainprobe.model.ranks import and_list
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user
from trainprobe.waits.divergence import call_says, camps_say
from trainprobe.waits.loops import own_frames

SHARDED = re.compile(
    r"torch/distributed/(?:fsdp|_composable)/|deepspeed/runtime/zero/|fairscale/nn/"
)
Spot = tuple[str, tuple[tuple[str, int], ...]]


def _sharded(scene: Scene) -> tuple[MainThread, ...]:
    """Ranks that wait for others below a sharded layer."""
    return tuple(
        t
        for t in scene.threads(scene.world)
        if t.leaf == "comm-wait" and any(SHARDED.search(frame.file) for frame in t.frames)
    )


def _inside_the_model(thread: MainThread) -> bool:
    """Does it wait below a module, a sharded layer or `backward()`?"""
    return thread.in_backward or any(map(_calls_layers, thread.frames))


def _calls_layers(frame: Frame) -> bool:
    """Is it a frame of a wrapper of layers, or of torch's own modules?"""
    return SHARDED.search(frame.file) is not None or frame.file.endswith(
        "torch/nn/modules/module.py"
    )


def _below_one_line(scene: Scene) -> tuple[MainThread, ...]:
    """All ranks, where each waits in a collective of a layer and all came to the model, or to
    `backward()`, by the same lines.
    """
    found = before_the_model(places(scene))
    threads = scene.threads(found)
    ways = {
        tuple((frame.base, frame.line) for frame in place.frames if is_user(frame))
        for place in found.values()
    }
    whole = len(threads) == len(found) == len(scene.world)
    inside = all(one.leaf == "comm-wait" and _inside_the_model(one) for one in threads)
    return threads if whole and inside and len(ways) == 1 and ways != {()} else ()


def _spot(thread: MainThread) -> Spot:
    """The operation, and the user's own lines above it."""
    return thread.op, tuple((frame.name, frame.line) for frame in thread.frames if is_user(frame))


def _camps(scene: Scene) -> tuple[tuple[int, ...], ...]:
    """All ranks that wait in a collective, by where; the smallest camp first."""
    found: dict[Spot, list[int]] = {}
    for thread in scene.threads(scene.world):
        if thread.leaf == "comm-wait":
            found.setdefault(_spot(thread), []).append(thread.rank or 0)
    return tuple(
        sorted((tuple(sorted(camp)) for camp in found.values()), key=lambda camp: (len(camp), camp))
    )


def _weigh(scene: Scene) -> Weighings:
    yield from of_divergent_forward(scene, Timeouts(scene))
    sharded, sides, parted = _sharded(scene), _camps(scene), scene.group.divergence
    if not sharded:
        yield from _of_any_layers(scene, sides)
        return
    if parted is not None and parted.kind in ("shape", "operation", "call-site"):
        calls = camps_say(parted)
        text = f"Below sharded layers the ranks part at collective {parted.position}: {calls}"
        yield weighing(13, "flight-recorder", text, ids=parted.evidence)
    if (
        len(sides) > 1
        and scene.ranks
        and parted is None
        and not set(scene.ranks) & {rank for side in sides for rank in side}
    ):
        says = (
            f"{ranks_say(scene.ranks)} came to none of these calls: on a mesh each of the others"
            f" waits where its own group needs {ranks_say(scene.ranks, capital=False)}"
        )
        yield weighing(-6, "suspects-stack", says, *sharded)
    elif len(sides) > 1:
        by_rank = {thread.rank: thread for thread in scene.threads(scene.world)}
        says = "; ".join(f"{ranks_say(side)}: {_word(by_rank[side[0]])}" for side in sides[:3])
        both = all(by_rank[side[0]] in sharded for side in sides)
        text = f"The ranks stand in different collectives of sharded layers ({says})"
        yield weighing(13 if both else 10, "other-stacks", text, *sharded)
        text = f"{ranks_say([t.rank or 0 for t in sharded])} wait below FSDP or ZeRO"
        yield weighing(10 if both else 3, "suspects-stack", text, *sharded)
        yield from all_asleep(scene, places(scene))
        yield from out_of_the_step(scene)
        yield from _outside(scene, sides, by_rank)
        yield from _branch(scene, sides)
    elif len(sharded) == len(scene.world) == 1:
        text = (
            f"It waits for the parameters of a layer ({_word(sharded[0])}), which all ranks gather:"
            " the others may be at other layers"
        )
        yield weighing(10, "suspects-stack", text, *sharded)
    elif len(sharded) == len(scene.world):
        text = f"All ranks wait in the same call of the same layer ({_word(sharded[0])})"
        yield weighing(-13, "other-stacks", text, *sharded)
    traced = [event for event in scene.of(LogEvent) if event.event == "zero-trace-invalidated"]
    if traced:
        text = f"ZeRO says that the order of layers changed: {traced[-1].line[:100]}"
        yield weighing(10, "suspects-log", text, traced[-1])


def _of_any_layers(scene: Scene, sides: tuple[tuple[int, ...], ...]) -> Weighings:
    """Without sharded layers: what the model itself exchanges, below one line of the step."""
    if len(sides) < 2 or scene.group.divergence is not None:
        return
    if not (threads := _below_one_line(scene)):
        return
    by_rank = {thread.rank: thread for thread in threads}
    says = "; ".join(f"{ranks_say(side)}: {by_rank[side[0]].op}" for side in sides[:3])
    text = f"The ranks stand in different collectives of the model's layers ({says})"
    yield weighing(13, "other-stacks", text, *threads)
    text = f"All came there by the same lines of their own, down to {threads[0].where}"
    yield weighing(6, "suspects-stack", text, *threads)
    yield from all_asleep(scene, places(scene))
    yield from _branch(scene, sides)


def _outside(
    scene: Scene, sides: tuple[tuple[int, ...], ...], by_rank: dict[int | None, MainThread]
) -> Weighings:
    """A camp in a call outside of the model that the other may have left out, such as a save, or
    behind a loop in which the other still is. A call that nobody can leave out is where the ranks
    meet again that ran fewer layers.
    """
    if len(sides) != 2:
        return
    for side, rest in (sides, sides[::-1]):
        thread = by_rank[side[0]]
        if _inside_the_model(thread) or not _inside_the_model(by_rank[rest[0]]):
            continue
        if (
            returned_before(scene, rest)
            or own_blocks(scene, places(scene), side)
            or _has_no_batch_left(scene, side)
        ):
            says = (
                f"{ranks_say(side)} {verb(side, 'is', 'are')} outside of the model, in a call that"
                f" {ranks_say(rest, capital=False)} may have left out or not reached:"
                f" {_word(thread)}"
            )
            yield weighing(-13, "suspects-stack", says, thread)


def _has_no_batch_left(scene: Scene, side: tuple[int, ...]) -> bool:
    """Has it left a loop over data in which the others still are? In another loop, such as one that
    generates, ranks run other layers by going round more or less often.
    """
    loop = loop_left(scene, side) if tuple(out_of_loop(scene)) == side else None
    return loop is not None and over_data(scene, loop)


def _branch(scene: Scene, sides: tuple[tuple[int, ...], ...]) -> Weighings:
    """An `if` around one camp's calls that may hold on some ranks only, unless it counts steps.

    Outside of the model it leads to a call of the whole model, such as an evaluation, that only
    some ranks make.
    """
    found = places(scene)
    outside = before_the_model(found)
    for side in sides:
        only = rank_block(scene, outside, side)
        if only is not None and holds_for_few(only):
            says = (
                f"The model itself runs on {ranks_say(side, capital=False)} alone there, under"
                f" `{short(only.text, 80)}` (line {only.line})"
            )
            yield weighing(-26, "source", says, *scene.sites(found[side[0]].frames))
            return
        own = rank_block(scene, found, side)
        if own is not None and holds_for_few(own) and not _of_a_layer(found[side[0]]):
            says = (
                f"{ranks_say(side)} {verb(side, 'is', 'are')} in a call of the program's own, under"
                f" `{short(own.text, 80)}` (line {own.line})"
            )
            yield weighing(-26, "source", says, *scene.sites(found[side[0]].frames))
            return
    for side in sides:
        block = first_found(
            one for one in own_blocks(scene, found, side) if not COUNTS.search(one.text)
        )
        if block is not None:
            says = (
                f"The layer of {ranks_say(side, capital=False)} runs under"
                f" `{short(block.text, 80)}` (line {block.line}), the others' does not"
            )
            yield weighing(6, "source", says, *scene.sites(found[side[0]].frames))
            return


def _of_a_layer(place: Place) -> bool:
    """Does a wrapper of layers make the call, or one of torch's own modules?"""
    return any(map(_calls_layers, place.frames[len(own_frames(place.frames)) :]))


def _word(thread: MainThread) -> str:
    below = next(
        (frame.name for frame in reversed(thread.frames) if SHARDED.search(frame.file)), ""
    )
    return f"{thread.op}{f' ({below})' if below else ''} at {thread.where}"


def _ranks(scene: Scene) -> tuple[int, ...]:
    sides = _camps(scene)
    if len(sides) < 2:
        return away(Timeouts(scene)) or scene.ranks
    return tuple(sorted(rank for side in sides if len(side) == len(sides[0]) for rank in side))


def _summary(scene: Scene) -> str:
    sides = _camps(scene)
    by_rank = {thread.rank: thread for thread in scene.threads(scene.world)}
    if not sides:
        apart, model = layers_apart(Timeouts(scene)), "a sharded model"
        calls = "ZeRO says that the order of layers changed"
        if not Timeouts(scene).events("zero-trace-invalidated"):
            calls = "rows of several kinds are in the data, and each takes another way"
        if scene.parted is not None:
            calls = f"their calls part: {camps_say(scene.parted)}"
        elif apart is not None:
            model = "the model"
            calls = f"they gave up in {call_says(apart[0])} and {call_says(apart[1])}"
        return f"The ranks ran different layers of {model} in this step; {calls}"
    where = and_list(
        [f"{ranks_say(side, capital=False)} in {_word(by_rank[side[0]])}" for side in sides[:2]]
    )
    return f"{ranks_say(_ranks(scene))} ran other layers than the rest in this step: {where}"


FIXES = """
Run every layer on every rank
    look at {place}: call the unused layer on a dummy input and add 0 * its output to the loss
"""
SHARDED_FIXES = """
Generate in step
    model.generate(..., synced_gpus=True)
Or shard less
    ZeRO stage 2, or leave the layer that is not always used out of fully_shard / the wrap policy
"""


def _fixes(scene: Scene) -> Fixes:
    sharded = _sharded(scene)
    threads = sharded or _below_one_line(scene)
    place = next((thread.where for thread in threads), "forward")
    of_any = threads and not sharded
    return fixes(FIXES, place=place) + (() if of_any else fixes(SHARDED_FIXES))


CAUSE = Cause(
    id="rank-divergent-forward",
    title="Ranks run different layers of the model",
    modes=("hang", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    would_settle=(
        "print which submodules each rank runs in a step, or look at the recorder's sizes:"
        " trainprobe attach --deep"
    ),
    refines="rank-conditional-collective",
    accounts_for=("collective-order-mismatch", "collective-shape-mismatch"),
)
