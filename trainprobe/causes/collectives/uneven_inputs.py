"""The ranks have different numbers of batches, so some come to the end of the epoch while others are still in it.

A dataset that was split by hand, a filter that keeps more samples on one rank, an IterableDataset whose shards are not equal:
the rank with fewer batches leaves its loop and goes on to the next thing (validation, a barrier, the end of the program) while
the others enter one collective more.

It is recognised by batch counts of the witness that differ by more than the one batch that a synchronous job may be apart, or by a
rank that ended or stands behind its loop while the others are inside a `for` loop over a loader. A rank that left the loop for
another reason (`rank-exited-early`) looks alike; the counts tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.batches import SURE, batch_counts
from trainprobe.causes.cause import Cause
from trainprobe.causes.parting import places
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.words import fix, sentence, subject
from trainprobe.facts import Block, Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.stacks.frames import Frame
from trainprobe.waits import SuspectGroup

# Loops that have the same length on all ranks: counting, and walking over the model. Loops over data need not.
OWN_LENGTH = re.compile(r"range\(|parameters\(|modules\(|buffers\(|children\(|param_groups|state_dict")


def _loop(scene: Scene) -> Block | None:
    """The `for` loop that the others' collective is in and the suspects are not."""
    found = places(scene)
    mine = {(block.line, block.text) for rank in scene.group.ranks if rank in found for block in _loops(scene, found[rank].frames)}
    theirs = [block for rank in scene.others if rank in found for block in _loops(scene, found[rank].frames)]
    return next((block for block in reversed(theirs) if (block.line, block.text) not in mine), None)


def _loops(scene: Scene, frames: tuple[Frame, ...]) -> list[Block]:
    sites = scene.sites(frames)
    return [block for site in sites for block in site.blocks if block.kind == "for" and block.branch == "body" and not OWN_LENGTH.search(block.text)]


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    counts = batch_counts(scene)
    left = [end for end in scene.endings(group.ranks) if end.how == "exited" and end.code == 0 and not (end.by_us or end.by_launcher)]
    ahead = [place for rank, place in places(scene).items() if rank in group.ranks]
    if not scene.others or not (left or ahead):
        return
    loop = _loop(scene)
    if counts is not None and counts.apart >= SURE:
        yield weighing(13, "probe-outcome", f"The ranks' loaders are uneven: {counts.says}", *counts.facts)
    elif counts is not None and counts.apart <= 0:
        yield weighing(-13, "probe-outcome", f"The rank had no fewer batches than the others: {counts.says}", *counts.facts)
    if loop is not None:
        yield weighing(6, "source", f"The others are inside `{loop.text}` (line {loop.line}), which this rank has left", ids=group.evidence)
    uneven = counts is not None and counts.apart >= SURE
    # Leaving with exit code 0 belongs to `rank-exited-early` too; it counts here as far as there is a sign of unequal loops.
    if left and (loop is not None or uneven):
        yield weighing(10 if uneven else 3, "exit-status", f"Rank {left[0].rank} came to its end with exit code 0", *left)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    counts, loop = batch_counts(scene), _loop(scene)
    detail = f": {counts.says}" if counts is not None else f": the others are still inside `{loop.text}`" if loop is not None else ""
    return sentence(f"{subject(scene)} ran out of batches before the others{detail}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(
            scene, "Give every rank the same number of batches", "DistributedSampler(dataset, drop_last=True), or cut every shard to the length of the shortest"
        ),
        fix(scene, "Or let DDP bear the difference", "wrap the loop: with torch.distributed.algorithms.join.Join([model]): ..."),
        fix(scene, "Check the lengths before training", "print(dist.get_rank(), len(loader))"),
    )


CAUSE = Cause(
    id="uneven-inputs",
    title="The ranks have different numbers of batches",
    means="The ranks' loaders hold different numbers of batches, so one rank leaves its loop while the others are still in it.",
    telling="The witness counted fewer batches on one rank, or the others are inside a loop over data that it has left.",
    modes=("crash", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="print len(loader) on every rank",
    refines="rank-exited-early",
    accounts_for=("rank-conditional-collective", "collective-order-mismatch"),
)
