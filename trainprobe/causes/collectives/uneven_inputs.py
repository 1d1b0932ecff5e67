"""The ranks have different numbers of batches, so some come to the end of the epoch while others
are still in it.

A dataset that was split by hand, a filter that keeps more samples on one rank, an IterableDataset
whose shards are not equal: the rank with fewer batches leaves its loop and goes on to the next
thing (validation, a barrier, the end of the program) while the others enter one collective more.

It is recognised by batch counts of the witness that differ by more than the one batch that a
synchronous job may be apart, or by a rank that ended or stands behind its loop while the others are
inside a `for` loop over a loader; the loop's counter on each rank of a live job says by how many. A
rank that left the loop for another reason (`rank-exited-early`) looks alike; the counts tell them
apart. Where the loop can skip a step (`if bad(batch): continue`), a rank that did so has as many
batches as the others and yet leaves first: then the place behind the loop says little.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.causes.batches import SURE, batch_counts
from trainprobe.causes.cause import Cause
from trainprobe.causes.collective_calls import of_uneven_inputs, printed_counts
from trainprobe.causes.collective_timeouts import Timeouts
from trainprobe.causes.diverging_calls import called_alone, places, under
from trainprobe.causes.early_loop_exits import (
    is_behind,
    left_by,
    loop_left,
    may_be_missed,
    out_of_loop,
    over_data,
    passed_by,
    step_skipped,
)
from trainprobe.causes.exception_handlers import out_of_the_step
from trainprobe.causes.parting_values import behind, passes_made, same_passes
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, short, subject, verb
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.user_objects import broken, weigh_broken
from trainprobe.facts import Block, MainThread
from trainprobe.stacks.servers import stands_in


def _shadowing(scene: Scene) -> tuple[MainThread, ...]:
    """Ranks at the end of torch's Join: they have no batch left, and take part only in collectives
    of the joined modules, while others still have some.
    """
    found = [
        thread
        for thread in scene.threads(scene.world)
        if any(stands_in(frame, JOINS) for frame in thread.frames)
    ]
    return tuple(found) if len(found) < len(scene.world) else ()


def _ranks(scene: Scene) -> tuple[int, ...]:
    return tuple(thread.rank or 0 for thread in _shadowing(scene)) or out_of_loop(scene)


def _weigh(scene: Scene) -> Weighings:
    if shadowing := _shadowing(scene):
        who = [thread.rank or 0 for thread in shadowing]
        says = (
            f"{ranks_say(who)} {verb(who, 'has', 'have')} no batch left:"
            f" {verb(who, 'it shadows', 'they shadow')} the others' steps at the end of the join at"
            f" {shadowing[0].where}"
        )
        yield weighing(26, "suspects-stack", says, *shadowing)
        return
    yield from of_uneven_inputs(scene, Timeouts(scene))
    yield from weigh_broken(broken(scene, "uneven"), 26)
    counts = batch_counts(scene)
    left = [
        end
        for end in scene.endings(scene.ranks)
        if end.how == "exited" and end.code == 0 and not (end.by_us or end.by_launcher)
    ]
    out = scene.ranks if left else out_of_loop(scene)
    ahead = [place for rank, place in places(scene).items() if rank in out]
    if len(out) >= len(scene.world) or not (left or ahead):
        return
    loop = loop_left(scene, out)
    yield from out_of_the_step(scene)
    if counts is not None and counts.apart >= SURE:
        yield weighing(
            13, "probe-outcome", f"The ranks' loaders are uneven: {counts.says}", *counts.facts
        )
    elif counts is not None and counts.apart <= 0:
        text = f"The rank had no fewer batches than the others: {counts.says}"
        yield weighing(-13, "probe-outcome", text, *counts.facts)
    if (passed := passed_by(scene, out, loop)) is not None:
        says = (
            f"The others have been where {ranks_say(out, capital=False)}"
            f" {verb(out, 'stands', 'stand')}, and went on: {passed}"
        )
        yield weighing(-13, "suspects-stack", says, *passed.facts)
    elif loop is not None:
        behind_it = not left and over_data(scene, loop) and is_behind(scene, out, loop)
        says = (
            f"The others are inside `{short(loop.text, 80)}` (line {loop.line}), which"
            f" {ranks_say(out, capital=False)} left"
        )
        doubt = _doubt(scene, out)
        says += f"; but {doubt}" if doubt else ""
        yield weighing(
            3 if doubt else 13 if behind_it else 6, "source", says, ids=scene.group.evidence
        )
        if behind_it and scene.group.mode == "hang" and not doubt:
            shown = [place.fact for place in places(scene).values()]
            text = (
                f"{ranks_say(out)} {verb(out, 'stands', 'stand')} in a collective behind that loop;"
                " the others in one inside it"
            )
            yield weighing(10, "other-stacks", text, *shown)
        yield from _passes(scene, out, loop)
    uneven = counts is not None and counts.apart >= SURE
    # Leaving with exit code 0 belongs to `rank-exited-early` too; it counts here as far as there is
    # a sign of unequal loops.
    if left and (loop is not None or uneven):
        text = f"Rank {left[0].rank} came to its end with exit code 0"
        yield weighing(10 if uneven else 3, "exit-status", text, *left)


def _passes(scene: Scene, out: Sequence[int], loop: Block) -> Weighings:
    """Whoever has left a loop keeps the number of its last pass."""
    late, same = behind(scene), same_passes(scene, loop)
    if late is not None:
        points, which = (10, "fewer") if set(late.ranks) == set(out) else (-10, "more")
        says = f"{ranks_say(out)} went round {which} times: {late.apart}"
        yield weighing(points, "suspects-stack", says, *late.apart.facts)
    elif same is not None:
        says = (
            f"All ranks came to the same pass of `{short(loop.text, 80)}` (`{same.name}` is"
            f" {same.value}): nobody had fewer batches"
        )
        yield weighing(-10, "suspects-stack", says, same)


def _doubt(scene: Scene, out: Sequence[int]) -> str:
    """What else may have parted the ranks at that loop, in words; empty where nothing is seen."""
    if (skip := step_skipped(scene, out)) is not None:
        return f"a step of it can be skipped: `{short(skip.text, 60)}` (line {skip.line})"
    if (exit_ := left_by(scene, out, loop_left(scene, out))) is not None:
        return f"it can be left before its end: `{short(exit_.text, 60)}` (line {exit_.line})"
    if (missed := may_be_missed(scene, out)) is not None:
        return f"their call stands {under(missed)}, which need not hold on all ranks"
    if (alone := called_alone(scene, places(scene), out)) is not None:
        return (
            f"only some ranks come to that call by {alone.where}, and are a call ahead from then on"
        )
    return ""


def _fixes(scene: Scene) -> Fixes:
    shadowing = {thread.rank for thread in _shadowing(scene)}
    others = [place for rank, place in places(scene).items() if rank not in shadowing]
    return fixes(JOINED, at=others[0]) if shadowing and others else fixes(FIXES)


def _summary(scene: Scene) -> str:
    if shadowing := _shadowing(scene):
        who = [thread.rank or 0 for thread in shadowing]
        return (
            f"{subject(scene, who)} ran out of batches before the others and"
            f" {verb(who, 'joins', 'join')} only the collectives of the joined modules, at"
            f" {shadowing[0].where}"
        )
    measured = broken(scene, "uneven")
    if measured is not None:
        return measured.says
    if printed := printed_counts(scene):
        return f"The ranks count different numbers of batches: {printed}"
    out = out_of_loop(scene)
    counts, loop = batch_counts(scene), loop_left(scene, out)
    detail = ""
    if counts is not None:
        detail = f": {counts.says}"
    elif loop is not None and (apart := passes_made(scene, loop)) is not None:
        detail = f": {apart}"
    elif loop is not None:
        detail = f": the others are still inside `{short(loop.text, 80)}`"
    return f"{subject(scene, out)} ran out of batches before the others{detail}"


JOINS = ("torch/distributed/algorithms/join.py", "__exit__")
FIXES = """
Give every rank the same number of batches
    DistributedSampler(dataset, drop_last=True)   (or cut every shard to the length of the
        shortest)
Or let DDP bear the difference
    wrap the loop: with torch.distributed.algorithms.join.Join([model]): ...
Check the lengths before training
    print(dist.get_rank(), len(loader))
"""
JOINED = """
Make no collective of your own inside the join
    {at}: a rank without batches does not take part in it; move it behind the `with`
Or give every rank the same number of batches
    DistributedSampler(dataset, drop_last=True)
Or end the epoch together
    Join([model], throw_on_early_termination=True), and catch its RuntimeError on all ranks
"""


CAUSE = Cause(
    id="uneven-inputs",
    title="The ranks have different numbers of batches",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    would_settle="print len(loader) on every rank",
    refines="rank-exited-early",
    wording=r"one rank that exhausted inputs",
    accounts_for=("rank-conditional-collective", "collective-order-mismatch"),
)
