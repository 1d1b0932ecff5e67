"""All ranks make the same call, but with tensors of another size or type.

A last batch that is shorter, predictions gathered without padding, a vocabulary that was padded on
one rank only: the call is the same line on every rank, yet the tensors do not fit. Gloo aborts the
rank that receives too much, which need not be the wrong one; NCCL hangs or silently mixes data.

It is recognised by the journal of collective calls (same call, other size), by the backend's
complaint about sizes, and by all ranks having broken in the same call. It is ruled out when the
ranks called different operations.

Of a log it is recognised by one sequence number and operation with other sizes in the ranks'
watchdog lines, by finger prints that differ in shape or type only, and by sizes that the job itself
printed: one is what the call was given, another of the same tensor is not.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.collective_calls import (
    CUT,
    away,
    is_scalar,
    lone_print,
    of_shape,
    rows_of_one_width,
    said_sizes,
)
from trainprobe.causes.collective_timeouts import Timeouts
from trainprobe.causes.commands import job
from trainprobe.causes.diverging_calls import DISAGREE, camps, disagreement, places
from trainprobe.causes.phrases import Fixes, file_line, fix, ranks_say, short, subject
from trainprobe.causes.printed_sizes import printed_sizes
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import statement, weigh_message
from trainprobe.facts import LogJob, RankException
from trainprobe.signatures.messages import message
from trainprobe.waits import Divergence
from trainprobe.waits.divergence import camps_say

WORDING = message("collective-shape-mismatch")


def _weigh(scene: Scene) -> Weighings:
    timeouts = Timeouts(scene)
    parted = scene.group.divergence
    if parted is not None and parted.kind in ("shape", "dtype"):
        calls = camps_say(parted)
        says = f"Same call, other tensors, at collective {parted.position}: {calls}"
        yield weighing(26, "flight-recorder", says, ids=parted.evidence)
        if rows := rows_of_one_width(scene):
            counts = " and ".join(str(count) for count in rows[:-1])
            says = f"Their sizes are {counts} rows of {rows[-1]}: the batches differ"
            yield weighing(6, "other-stacks", says, ids=parted.evidence)
    elif parted is not None and parted.kind != "missing":
        says = "The ranks called different operations, not one with other sizes"
        yield weighing(-26, "flight-recorder", says, ids=parted.evidence)
    yield from of_shape(scene, timeouts)
    if (printed := printed_sizes(timeouts)) is not None:
        says = f"The ranks' tensors differ: {printed.says}"
        yield weighing(26 if printed.each else 13, "suspects-log", says, printed.one)
    yield from weigh_message(scene, WORDING)
    disagree = statement(scene, DISAGREE, scene.world)
    if (lone := lone_print(scene)) is not None and is_scalar(lone[2]):
        disagree = None
        says = f"It was in a {lone[1]} of one element, which cannot differ in size"
        yield weighing(-13, "suspects-log", says, *scene.of(RankException)[:3])
    if disagree is not None:
        told_sizes = (
            disagree.match.group(0).startswith(("op.preamble", "Received data size"))
            and scene.one(LogJob) is not None
        )
        # a log shows no other rank's place that could say more
        points = 13 if told_sizes else 3 if lone is not None else 10
        what = "calls" if lone is not None else "sizes"
        says = f"The backend says that the {what} differ: {disagreement(disagree)}"
        yield weighing(points, "suspects-log", says, disagree.fact)
    found = places(scene)
    sides = camps(found)
    shown = [place.fact for place in found.values()]
    # The same call on all ranks is what a healthy job looks like as well: it counts only beside the
    # complaint about sizes.
    if len(found) > 1 and len(sides) == 1 and disagree is not None:
        says = f"{ranks_say(sorted(found))} broke in the same call, {next(iter(found.values()))}"
        yield weighing(10, "other-stacks", says, *shown)
    elif len(sides) > 1:
        says = "; ".join(f"{ranks_say(side)}: {found[side[0]]}" for side in sides[:3])
        yield weighing(
            -13, "other-stacks", f"The ranks are in different collectives ({says})", *shown
        )


def _ranks(scene: Scene) -> tuple[int, ...]:
    """The smallest camp; of equal camps the one whose size is not what its own earlier calls at
    that line had, else all of them.
    """
    parted = scene.group.divergence
    if parted is None or parted.kind not in ("shape", "dtype") or not parted.camps:
        return away(Timeouts(scene)) or scene.ranks
    least = [camp for camp in parted.camps if len(camp) == len(parted.camps[0])]
    changed = [camp for camp in least if _changed(scene, camp[0], parted)]
    return tuple(
        sorted(rank for camp in (changed if len(changed) == 1 else least) for rank in camp)
    )


def _changed(scene: Scene, rank: int, parted: Divergence) -> bool:
    """Did this rank pass another size or type than in its earlier calls at this line?"""
    calls = [call for call in scene.calls(rank) if (call.file, call.line) in parted.sites]
    here = next((call for call in calls if call.number == parted.position), None)
    before = [
        call
        for call in calls
        if here is not None and call.group == here.group and call.number < here.number
    ]
    return (
        here is not None
        and bool(before)
        and all((call.sizes, call.dtype) != (here.sizes, here.dtype) for call in before)
    )


def _summary(scene: Scene) -> str:
    who, parted = _ranks(scene), scene.group.divergence
    if parted is not None and len(parted.calls) > 1:
        calls = dict(zip(parted.camps, parted.calls, strict=False))
        own = who if who in calls else parted.camps[0]
        rest = " and ".join(
            f"{ranks_say(camp, capital=False)} {call}"
            for camp, call in list(calls.items())[:3]
            if camp != own
        )
        return f"{subject(scene, own)} called {calls[own]}, but {rest}"
    prints = said_sizes(scene)
    if prints is not None and prints[1][2] != prints[2][2]:
        return (
            f"The ranks passed tensors of different size or type to {prints[1][1]}: {prints[1][2]}"
            f" against {prints[2][2] or CUT}"
        )
    if (words := statement(scene, WORDING)) is not None:
        return f"The ranks do not have tensors of the same size: {short(words.text, 200)}"
    found = places(scene)
    place = next((str(found[rank]) for rank in who if rank in found), "a collective")
    return f"{subject(scene, who)} broke in {place}: the tensors of the ranks differ in size"


def _fixes(scene: Scene) -> Fixes:
    found, parted = places(scene), scene.group.divergence
    place = file_line(*parted.sites[0]) if parted is not None and parted.sites else ""
    place = (
        place
        or next((file_line(at.file, at.line) for at in found.values()), "")
        or "the call above"
    )
    return (
        fix(
            "Make the sizes equal before the call",
            f"at {place}: pad to the largest size, or gather the sizes first and pad to their"
            " maximum",
        ),
        fix(
            "Keep the last batch from being shorter",
            "DataLoader(..., drop_last=True) or DistributedSampler(..., drop_last=True)",
        ),
        fix("See both shapes", f"TORCH_DISTRIBUTED_DEBUG=DETAIL {job(scene)}".strip()),
    )


CAUSE = Cause(
    id="collective-shape-mismatch",
    title="The ranks pass tensors of different size to one collective",
    modes=("hang", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    would_settle=(
        "run once with TORCH_DISTRIBUTED_DEBUG=DETAIL, which compares shapes before each collective"
    ),
    refines="user-exception",
    wording=WORDING,
)
