"""The ranks make the same collective calls, but in another order.

Iterating over a set or over a dict that was filled in another order, hooks that fire in another
order, or two process groups used in turn: rank 0 reduces A and then B, rank 1 reduces B and then A.
Each waits in its first call for the other.

It is recognised by the journal of collective calls: where the ranks part, each makes next the call
that the others make here. Without the journal two camps in different operations are only a hint,
because a collective under an `if` looks the same. Ranks that wait for ever at one line which names
a group are on several groups, and a loop over the groups around it speaks for another order. A
second thread that makes a collective call beside the main thread comes between its calls at another
place on each rank. Of sends and receives the stacks say enough: ranks that wait for each other in
them have not put the two halves of an exchange in the same order. Ranks of a live job that stand in
one call, in the same pass, for different items of the loop around it go through them in another
order.

Of a log it is recognised by ranks of which each makes next (sequence number plus one) the call that
the other makes here.
"""

from __future__ import annotations

from collections.abc import Mapping

from trainprobe.causes.cause import Cause
from trainprobe.causes.collective_calls import away, of_order
from trainprobe.causes.collective_timeouts import Timeouts
from trainprobe.causes.concurrent_calls import ConcurrentCalls, concurrent_calls, names_its_group
from trainprobe.causes.crossed_groups import crossed_groups, one_line_for_groups
from trainprobe.causes.diverging_calls import (
    DISAGREE,
    Place,
    all_asleep,
    camps,
    disagreement,
    exchange,
    fixes_of_counts,
    of_stopped,
    places,
    rank_block,
)
from trainprobe.causes.left_exchanges import left_exchange
from trainprobe.causes.parting_values import PartedValue, items_apart, order_of_items, roots_apart
from trainprobe.causes.phrases import Fixes, file_line, fixes, ranks_say, short, subject, verb
from trainprobe.causes.rank_differences import weigh_other_copies
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import statement
from trainprobe.causes.strange_contents import weigh_strange_contents
from trainprobe.stacks.places import is_user
from trainprobe.waits.divergence import camps_say


def _weigh(scene: Scene) -> Weighings:
    timeouts = Timeouts(scene)
    parted = scene.group.divergence
    yield from of_order(scene, timeouts)
    yield from of_stopped(scene)
    if parted is not None and parted.kind == "order":
        calls = camps_say(parted)
        text = (
            f"From collective {parted.position} on the ranks make the same calls in another order:"
            f" {calls}"
        )
        yield weighing(26, "flight-recorder", text, ids=parted.evidence)
    elif parted is not None and parted.kind == "operation" and not parted.followed:
        # One number against gradients is no other order of the same calls; and one call of each of
        # two ranks that wait tells nothing of their order.
        points = 3 if len(set(parted.ops)) == 1 else 6 if _one_each(scene) else 10
        text = (
            f"At collective {parted.position} the ranks were in different calls:"
            f" {camps_say(parted)}"
        )
        yield weighing(points, "flight-recorder", text, ids=parted.evidence)
    elif parted is not None and parted.kind != "missing":
        text = (
            f"The calls themselves differ between the ranks ({parted.kind}), not only their order"
        )
        yield weighing(-26, "flight-recorder", text, ids=parted.evidence)
    found = places(scene)
    sides = camps(found)
    if halves := exchange(scene):
        yield from _of_exchange(scene, halves)
        return
    at_once = concurrent_calls(scene)
    if at_once:
        yield from _of_two_threads(scene, at_once)
        yield from all_asleep(scene, found)
    if len(sides) < 2 or at_once:
        if parted is None and not at_once:
            yield from _of_one_line(scene, found)
            yield from _of_items(scene, found)
        return
    shown = [place.fact for place in found.values()]
    yield from all_asleep(scene, found)
    yield from weigh_other_copies(scene)
    if len(sides) == 2 and not any(rank_block(scene, found, side) for side in sides):
        says = "; ".join(f"{ranks_say(side)}: {found[side[0]]}" for side in sides)
        text = f"Two camps are in different collectives, and no `if` on a rank is seen ({says})"
        yield weighing(6, "other-stacks", text, *shown)
    elif len(sides) == 2:
        yield weighing(-6, "source", "One camp's call stands under an `if` on the rank", *shown)
    if (apart := order_of_items(scene)) is not None:
        says = f"In one loop around these calls the ranks are at different things: {apart}"
        yield weighing(13, "suspects-stack", says, *apart.facts)
    crossed = crossed_groups(scene, found) if parted is None else None
    if crossed is not None:
        (mine, theirs), sites = crossed
        text = (
            f"One line calls it on the group `{mine}`, the other on `{theirs}`: they can only wait"
            " for each other"
        )
        yield weighing(10, "source", text, *sites)
    disagree = statement(scene, DISAGREE, scene.world)
    if disagree is not None:
        text = f"The backend says that the ranks do not agree: {disagreement(disagree)}"
        yield weighing(3, "suspects-log", text, disagree.fact)


def _of_exchange(scene: Scene, halves: dict[int, Place]) -> Weighings:
    """Sends and receives of which none is another's other half."""
    says = "; ".join(f"{ranks_say(side)}: {halves[side[0]]}" for side in camps(halves)[:4])
    shown = [place.fact for place in halves.values()]
    text = f"Each is in a send or receive whose other half nobody has come to ({says})"
    yield weighing(13, "other-stacks", text, *shown)
    if (left := left_exchange(scene)) is not None:
        yield weighing(10, "suspects-stack", left.says, *left.apart.facts)
    yield from all_asleep(scene, halves)


def _of_one_line(scene: Scene, found: dict[int, Place]) -> Weighings:
    """All ranks wait at one line that names a group: who waits for whom only --deep can tell."""
    one_line = one_line_for_groups(scene, found)
    if one_line is None:
        return
    group, site, loop = one_line
    text = (
        f"All ranks wait at one line, on the group `{group}`: of one group they would have met, so"
        " they are on several"
    )
    # with NCCL a link or a kernel that stands still looks the same
    points = 3 if scene.live is not None and scene.live.backend == "nccl" else 6
    shown = [place.fact for place in found.values()]
    yield weighing(points, "other-stacks", text, *shown, site)
    if loop is not None:
        says = (
            f"`{short(loop.text, 60)}` stands in a loop over the groups, one call after the other"
        )
        yield weighing(6, "source", says, loop)
    yield from all_asleep(scene, found)


def _of_items(scene: Scene, found: dict[int, Place]) -> Weighings:
    """All ranks wait at one line for different things of the loop around it."""
    if (apart := items_apart(scene)) is not None:
        says = f"All are in one call, for different things: {apart}"
        yield weighing(13, "suspects-stack", says, *apart.facts)
        yield from all_asleep(scene, found)
    elif roots := roots_apart(scene):
        each = ", ".join(f"{one.value} on rank {rank}" for rank, one in sorted(roots.items())[:4])
        one = next(iter(roots.values()))
        says = f"All are in one {one.function}, but `{one.name}` is {each}"
        yield weighing(10, "suspects-stack", says, *roots.values())
        yield from all_asleep(scene, found)


def _of_two_threads(scene: Scene, at_once: Mapping[int, ConcurrentCalls]) -> Weighings:
    calls = "; ".join(sorted({str(two) for two in at_once.values()})[:2])
    shown = [fact for two in at_once.values() for fact in (two.main.fact, two.other.fact)]
    text = f"Each rank makes two collective calls at once: {calls}"
    if len(at_once) < len(scene.world):
        some = tuple(sorted(at_once))
        text = (
            f"{ranks_say(some)} {verb(some, 'makes', 'make')} two collective calls at once, to the"
            f" second of which no other rank has come: {calls}"
        )
    if any(names_its_group(scene, two) for two in at_once.values()):
        yield weighing(3, "other-stacks", f"{text}; one of them names its group", *shown)
    else:
        yield weighing(13, "other-stacks", text, *shown)


def _one_each(scene: Scene) -> bool:
    """Is one call of each of two ranks known, which wait in it?"""
    parted = scene.parted
    camps = [len(camp) for camp in parted.camps] if parted is not None else []
    return scene.group.mode == "hang" and camps == [1, 1]


def _ranks(scene: Scene) -> tuple[int, ...]:
    if scene.group.divergence is None and exchange(scene):
        left = left_exchange(scene)
        return (left.rank,) if left is not None else scene.ranks
    at_once = concurrent_calls(scene)
    if at_once and scene.group.divergence is None:
        return tuple(sorted(at_once))
    sides = (
        scene.group.divergence.camps if scene.group.divergence is not None else camps(places(scene))
    )
    if len(sides) < 2:
        return away(Timeouts(scene)) or scene.ranks
    return tuple(sorted(rank for side in sides if len(side) == len(sides[0]) for rank in side))


def _summary(scene: Scene) -> str:
    parted = scene.group.divergence
    who = subject(scene, _ranks(scene))
    halves = exchange(scene) if parted is None else {}
    if halves and (left := left_exchange(scene)) is not None:
        return left.says
    if halves:
        what = " and ".join(sorted({place.op for place in halves.values()}))
        return (
            f"{subject(scene, scene.ranks)} wait for each other in {what}: none of these calls is"
            " another's other half"
        )
    if parted is not None and parted.kind == "order" and len(parted.calls) > 1:
        others = (
            "the others" if len(parted.camps) > 2 else ranks_say(parted.camps[1], capital=False)
        )
        return (
            f"{subject(scene, parted.camps[0])} called {parted.calls[0]} where {others} called"
            f" {parted.calls[1]}, and the other way round next"
        )
    if parted is not None:
        return (
            f"The ranks were in different calls at collective {parted.position}:"
            f" {camps_say(parted)}"
        )
    at_once = concurrent_calls(scene)
    if at_once:
        two = next(iter(at_once.values()))
        each = "each rank"
        if len(at_once) < len(scene.world):
            each = ranks_say(sorted(at_once), capital=False)
        return (
            f"Two threads of {each} make collective calls at once ({two}): on each rank they may"
            " come in another order"
        )
    found = places(scene)
    sides = camps(found)
    if (apart := _apart(scene)) is not None:
        calls = str(next(iter(found.values()))) if len(sides) == 1 else "the calls of one loop"
        return (
            f"All ranks are in {calls} for different things: {apart}. The loop does not go through"
            " them in the same order on all ranks"
        )
    if (one_line := one_line_for_groups(scene, found)) is not None:
        place = next(iter(found.values()))
        return (
            f"{subject(scene, sides[0])} wait at one line, {place}, for each other: its group"
            f" `{one_line[0]}` is another on each, and the calls on the groups come in another"
            " order. Which, `trainprobe attach --deep` tells"
        )
    if len(sides) == 2 and len(sides[0]) == len(sides[1]):
        one, other = (f"{ranks_say(side, capital=False)} in {found[side[0]]}" for side in sides)
        return f"The ranks make their collective calls in another order: {one}, {other}"
    here = f": {found[sides[0][0]]}, the others {found[sides[-1][0]]}" if len(sides) > 1 else ""
    return f"{who} made collective calls in another order than the others{here}"


def _apart(scene: Scene) -> PartedValue | None:
    """The loop that goes through its things in another order on some ranks."""
    alike = len(camps(places(scene))) == 1
    return items_apart(scene) if alike else order_of_items(scene)


FIXES = """
Make the order the same on all ranks
    sort what the loop around the calls iterates over{where}: sorted(names) instead of a set or a
        dict's own order
Keep two groups apart
    with several process groups, finish the work on one (work.wait()) before the other is used
"""


LEFT_OUT = """
Make the exchange in every pass
    also in one that has nothing to give{skip}: send zeros, or what was sent last
Or leave it out on both sides
    tell the partner first: exchange a flag in each pass, and the tensors only where both flags say
        so
"""


OF_ONE_THREAD = """
Give the other thread a group of its own
    on all ranks, before training: own = torch.distributed.new_group(backend="gloo")
    pass it at {other}: {op}(…, group=own)
Or make the calls one after the other
    wait for thread {thread} before the main thread makes its next collective call
"""

OF_A_LIBRARY = """
Give the other thread a group of its own
    on all ranks, before training: own = torch.distributed.new_group(backend="gloo")
    pass it where thread {thread} is started: dcp.async_save(…, process_group=own)
Or make the calls one after the other
    wait for thread {thread} before the main thread makes its next collective call, and start it on
        all ranks in the same step: decide by the step's number, not by each rank's own clock
"""


def _fixes(scene: Scene) -> Fixes:
    parted = scene.group.divergence
    called = parted.sites if parted is not None else ()
    sites = dict.fromkeys(place for site in called if (place := file_line(*site)))
    if (apart := _apart(scene)) is not None:
        sites[f"line {apart.header[0]}"] = None
    where = f" ({' and '.join(sites)})" if sites else ""
    if parted is None and (left := left_exchange(scene)) is not None:
        skip = f" ({short(left.skip.text, 60)} in line {left.skip.line})" if left.skip else ""
        return fixes(LEFT_OUT, skip=skip)
    if parted is None and exchange(scene):
        return fixes_of_counts(scene) + fixes("""
            Pair each receive with a send
                let neighbours take turns: even ranks send first, odd ranks receive first; tags must
                    be the same
            Or start both halves before waiting
                dist.batch_isend_irecv([P2POp(isend, …), P2POp(irecv, …)]), then wait for all of
                    them
        """)
    at_once = concurrent_calls(scene)
    if at_once:
        two = next(iter(at_once.values()))
        name = two.thread.name
        if not any(is_user(frame) for frame in two.other.frames):
            return fixes(OF_A_LIBRARY, thread=name)
        other = file_line(two.other.file, two.other.line)
        return fixes(OF_ONE_THREAD, op=two.other.op, other=other, thread=name)
    return fixes(FIXES, where=where)


CAUSE = Cause(
    id="collective-order-mismatch",
    title="The ranks call the same collectives in another order",
    modes=("hang", "crash"),
    weigh=lambda scene: (*_weigh(scene), *weigh_strange_contents(scene, 13)),
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    would_settle="list each rank's next two collectives with TORCH_DISTRIBUTED_DEBUG=DETAIL",
)
