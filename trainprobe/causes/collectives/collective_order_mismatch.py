"""The ranks make the same collective calls, but in another order.

Iterating over a set or over a dict that was filled in another order, hooks that fire in another order, or two process groups
used in turn: rank 0 reduces A and then B, rank 1 reduces B and then A. Each waits in its first call for the other.

It is recognised by the journal of collective calls: where the ranks part, each makes next the call that the others make here.
Without the journal two camps in different operations are only a hint, because a collective under an `if` looks the same. Of sends and
receives the stacks say enough: ranks that wait for each other in them have not put the two halves of an exchange in the same order.

Of a log it is recognised by ranks of which each makes next (sequence number plus one) the call that the other makes here.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.collectives_told import away, of_order
from trainprobe.causes.crossed_groups import crossed_groups
from trainprobe.causes.parting import DISAGREE, all_asleep, camps, disagreement, exchange, places, rank_block
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import said
from trainprobe.causes.timeouts_told import Timeouts
from trainprobe.causes.words import file_line, fix, ranks_say, sentence, subject
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup
from trainprobe.waits.divergence import camps_say


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    told = Timeouts(scene)
    parted = group.divergence
    yield from of_order(scene, told)
    if parted is not None and parted.kind == "order":
        calls = ", ".join(f"{ranks_say(camp, capital=False)} called {call}" for camp, call in zip(parted.camps, parted.calls, strict=False))
        yield weighing(
            26, "flight-recorder", f"From collective {parted.position} on the ranks make the same calls in another order: {calls}", ids=parted.evidence
        )
    elif parted is not None and parted.kind == "operation" and not parted.followed:
        points = 10 if len(set(parted.ops)) > 1 else 3  # one number against gradients: no other order of the same calls
        yield weighing(
            points, "flight-recorder", f"At collective {parted.position} the ranks were in different calls: {camps_say(parted)}", ids=parted.evidence
        )
    elif parted is not None and parted.kind != "missing":
        yield weighing(-26, "flight-recorder", f"The calls themselves differ between the ranks ({parted.kind}), not only their order", ids=parted.evidence)
    found = places(scene)
    sides = camps(found)
    halves = exchange(scene)
    if halves:
        says = "; ".join(f"{ranks_say(side)}: {halves[side[0]]}" for side in camps(halves)[:4])
        shown = [place.fact for place in halves.values()]
        yield weighing(13, "other-stacks", f"Each is in a send or receive whose other half nobody has come to ({says})", *shown)
        yield from all_asleep(scene, halves)
        return
    if len(sides) < 2:
        return
    shown = [place.fact for place in found.values()]
    yield from all_asleep(scene, found)
    if len(sides) == 2 and not any(rank_block(scene, found, side) for side in sides):
        says = "; ".join(f"{ranks_say(side)}: {found[side[0]]}" for side in sides)
        yield weighing(6, "other-stacks", f"Two camps are in different collectives, and no `if` on a rank is seen ({says})", *shown)
    elif len(sides) == 2:
        yield weighing(-6, "source", "One camp's call stands under an `if` on the rank", *shown)
    crossed = crossed_groups(scene, found) if parted is None else None
    if crossed is not None:
        (mine, theirs), sites = crossed
        yield weighing(10, "source", f"One line calls it on the group `{mine}`, the other on `{theirs}`: they can only wait for each other", *sites)
    disagree = said(scene, DISAGREE, scene.world)
    if disagree is not None:
        yield weighing(3, "suspects-log", f"The backend says that the ranks do not agree: {disagreement(disagree)}", disagree.fact)


def _ranks(facts: Facts, group: SuspectGroup) -> tuple[int, ...]:
    if group.divergence is None and exchange(Scene(facts, group)):
        return group.ranks
    sides = group.divergence.camps if group.divergence is not None else camps(places(Scene(facts, group)))
    if len(sides) < 2:
        return away(Timeouts(Scene(facts, group))) or group.ranks
    return tuple(sorted(rank for side in sides if len(side) == len(sides[0]) for rank in side))


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene, parted = Scene(facts, group), group.divergence
    who = subject(scene, _ranks(facts, group))
    halves = exchange(scene) if parted is None else {}
    if halves:
        what = " and ".join(sorted({place.op for place in halves.values()}))
        return sentence(f"{subject(scene, group.ranks)} wait for each other in {what}: none of these calls is another's other half")
    if parted is not None and parted.kind == "order" and len(parted.calls) > 1:
        return sentence(f"{who} called {parted.calls[0]} where the others called {parted.calls[1]}, and the other way round next")
    if parted is not None:
        return sentence(f"The ranks were in different calls at collective {parted.position}: {camps_say(parted)}")
    return sentence(f"{who} makes its collective calls in another order than the others")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene, parted = Scene(facts, group), group.divergence
    sites = [place for site in (parted.sites if parted is not None else ()) if (place := file_line(*site))]
    where = f" ({' and '.join(sites)})" if sites else ""
    if parted is None and exchange(scene):
        return (
            fix(scene, "Pair each receive with a send", "let neighbours take turns: even ranks send first, odd ranks receive first; tags must be the same"),
            fix(scene, "Or start both halves before waiting", "dist.batch_isend_irecv([P2POp(isend, …), P2POp(irecv, …)]), then wait for all of them"),
        )
    return (
        fix(
            scene,
            "Make the order the same on all ranks",
            f"sort what the loop around the calls iterates over{where}: sorted(names) instead of a set or a dict's own order",
        ),
        fix(scene, "Keep two groups apart", "with several process groups, finish the work on one (work.wait()) before the other is used"),
    )


CAUSE = Cause(
    id="collective-order-mismatch",
    title="The ranks call the same collectives in another order",
    means="All ranks make the same collective calls, but not in the same order, so that each waits for the other.",
    telling="Where the journal of calls parts, each rank makes next the call that the others make here.",
    modes=("hang", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    would_settle="list each rank's next two collectives with TORCH_DISTRIBUTED_DEBUG=DETAIL",
)
