"""The groups of suspects of a cell that stopped making progress: edges from where every rank
stands, then the ends of the graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts import Facts, Rung
from trainprobe.model.diagnosis import Link
from trainprobe.model.waits import Node, SuspectHow, Wait
from trainprobe.stacks.rules import RPC
from trainprobe.waits.divergence import camps_say, divergence_in, ranks_say
from trainprobe.waits.edges import Edges
from trainprobe.waits.graph import Graph
from trainprobe.waits.peers import P2P_OPS
from trainprobe.waits.silent_work import at_work
from trainprobe.waits.standings import Standing, meetings_of
from trainprobe.waits.suspects import Divergence, Mode, SuspectGroup


def hang_groups(facts: Facts, rung: Rung, ranks: Sequence[Standing]) -> tuple[SuspectGroup, ...]:
    """The suspects of a hung cell, most to blame first. Empty only where no rank was seen at
    all.
    """
    divergence = parting(facts, rung.cell, ranks)
    if divergence is not None and divergence.kind != "missing" and all_met(ranks):
        return (divergence_group(rung, ranks, divergence),)
    graph = Edges(facts, rung.cell, ranks).graph()
    groups = [
        group
        for end in graph.ends()
        if (group := group_of_end(rung, ranks, graph, end, divergence)) is not None
    ]
    return at_work(facts, rung, ranks, merged(groups))


def parting(
    facts: Facts, cell: str, ranks: Sequence[Standing], dumped: Sequence[int] | None = None
) -> Divergence | None:
    """The earliest divergence of the ranks. A rank that is missing from one call because it waits
    inside another (a receive, say, of which no journal knows) is a victim, and makes none.
    """
    world = [standing.rank for standing in ranks]
    divergence = divergence_in(facts, cell, world, hung=True, dumped=dumped)
    if divergence is None or divergence.kind != "missing":
        return divergence
    inside = {standing.rank for standing in ranks if standing.in_collective}
    return None if inside.issuperset(divergence.camps[0]) else divergence


def all_met(ranks: Sequence[Standing]) -> bool:
    """Every rank is inside some collective: nobody is elsewhere who could be to blame first."""
    return all(standing.in_collective for standing in ranks)


def group_of_end(
    rung: Rung,
    ranks: Sequence[Standing],
    graph: Graph,
    end: tuple[Node, ...],
    divergence: Divergence | None,
    by_node: dict[Node, Standing] | None = None,
) -> SuspectGroup | None:
    """Who must act at this end, and who waits for them. `by_node` are the ranks by their nodes,
    for whoever asks of thousands of ends.
    """
    by_node = by_node or {Node("rank", str(standing.rank)): standing for standing in ranks}
    members = [by_node[node] for node in end if node in by_node]
    outside = [node for node in end if node.kind in ("process", "lock", "peer")]
    reached = graph.reaches(end)
    victims = tuple(sorted(by_node[node].rank for node in reached if node in by_node))
    if not members and end[0].kind == "collective":  # everybody is inside it, and nobody gets out
        members = [
            by_node[wait.waiter]
            for wait in graph.waits
            if wait.awaited in end and wait.waiter in by_node
        ]
        victims = ()
    if (
        not members and outside
    ):  # the end is a worker or a lock holder: the rank that waits for it must act
        members = [by_node[node] for node in _last_ranks(graph, end, by_node)]
        victims = tuple(rank for rank in victims if rank not in {member.rank for member in members})
    if not members:
        return None
    how, mode, says = _how(members, len(ranks), end)
    camps: tuple[tuple[int, ...], ...] = ()
    chain: tuple[Wait, ...] = ()
    if how == "cycle" and any(node.kind == "lock" for node in end):
        members, chain = _around_the_lock(graph, end, by_node)
        says = (
            f"{ranks_say(sorted(member.rank for member in members))} wait for each other, by"
            f" {end_lock(end)} and a collective"
        )
        victims = tuple(standing.rank for standing in ranks if standing not in members)
    elif how == "cycle" and is_exchange(
        members
    ):  # a send or receive that has no other half is no camp: all of the circle must act
        victims = tuple(standing.rank for standing in ranks if standing not in members)
        chain = _round(graph, members)
    elif how == "cycle":
        camps = _camps(ranks)
        members = _smallest(camps, members, by_node)
        victims = tuple(standing.rank for standing in ranks if standing not in members)
        verb = "stands" if len(members) == 1 else "stand"
        same_op = len(
            {standing.meeting for standing in ranks if standing.in_collective}
        ) == 1 and all_met(ranks)
        other = f"{members[0].meeting} at another line" if same_op else "another collective"
        says = (
            f"{ranks_say([member.rank for member in members])} {verb} {'in' if same_op else 'at'}"
            f" {other} than the rest"
        )
        if not camps[1:]:
            says = _how(members, len(ranks), end)[2]
        elif len(members) == len(ranks):
            says = (
                f"{ranks_say([member.rank for member in members])} stand"
                f" {'in calls of ' + members[0].meeting + ' at different lines' if same_op else 'at different collectives'}"  # noqa: E501
            )
        chain = (
            graph.chain(Node("rank", str(victims[0])), [Node("rank", str(members[0].rank))])
            if victims
            else ()
        )
    elif victims:
        chain = graph.chain(Node("rank", str(victims[0])), end)
    return SuspectGroup(
        cell=rung.cell,
        probe=rung.probe,
        ranks=tuple(sorted(member.rank for member in members)),
        how=how,
        says=says,
        mode=mode,
        victims=victims,
        chain=tuple(
            Link(_words(wait.waiter, victims), _words(wait.awaited, ()), wait.how, wait.evidence)
            for wait in chain
        ),
        evidence=tuple(dict.fromkeys(id_ for member in members for id_ in member.evidence)),
        world_size=len(ranks),
        hosts=tuple(sorted({member.host for member in members if member.host})),
        camps=camps,
        divergence=divergence,
    )


def _last_ranks(graph: Graph, end: tuple[Node, ...], by_node: dict[Node, Standing]) -> list[Node]:
    """The ranks from which the way to the end leads over no other rank: over a worker, a lock
    and its holder, say.
    """
    back: dict[Node, list[Node]] = defaultdict(list)
    for wait in graph.waits:
        back[wait.awaited].append(wait.waiter)
    found: dict[Node, None] = {}
    seen, queue = set(end), list(end)
    while queue:
        for node in back[queue.pop(0)]:
            if node in seen:
                continue
            seen.add(node)
            if node in by_node:
                found[node] = None
            else:
                queue.append(node)
    return sorted(found, key=lambda node: int(node.key))


def _around_the_lock(
    graph: Graph, end: tuple[Node, ...], by_node: dict[Node, Standing]
) -> tuple[list[Standing], tuple[Wait, ...]]:
    """Of a cycle through a lock: the ranks that want it, themselves or by a process that they wait
    for, those that hold it, and the way round.

    The way leads from the holder to the lock, and from the lock back to the holder.
    """
    lock = next(node for node in end if node.kind == "lock")
    wanting = _last_ranks(graph, (lock,), by_node)
    holding = _first_ranks(graph, lock, by_node)
    start = holding[0] if holding else wanting[0]
    chain = (
        *graph.chain(start, [lock]),
        *(wait for wait in graph.waits_of(lock) if wait.awaited == start),
    )
    return [by_node[node] for node in dict.fromkeys([*wanting, *holding])], chain


def _first_ranks(graph: Graph, start: Node, by_node: dict[Node, Standing]) -> list[Node]:
    """The ranks to which the way from `start` leads over no other rank."""
    found: dict[Node, None] = {}
    seen, queue = {start}, [start]
    while queue:
        for wait in graph.waits_of(queue.pop(0)):
            if wait.awaited in seen:
                continue
            seen.add(wait.awaited)
            if wait.awaited in by_node:
                found[wait.awaited] = None
            else:
                queue.append(wait.awaited)
    return list(found)


def is_exchange(members: Sequence[Standing]) -> bool:
    """Are all of them in a send, a receive or a remote call?"""
    return all(member.op.split(" #")[0] in (*P2P_OPS, RPC) for member in members)


def _round(graph: Graph, members: Sequence[Standing]) -> tuple[Wait, ...]:
    """The waits of a circle once round, from its first rank."""
    first = Node("rank", str(members[0].rank))
    ways = [
        (wait, *graph.chain(wait.awaited, [first]))
        for wait in graph.waits_of(first)
        if wait.awaited != first
    ]
    return min((way for way in ways if len(way) > 1), key=len, default=())


def end_lock(end: tuple[Node, ...]) -> str:
    """`the lock on /data/cache.lock`."""
    return next((f"the lock on {node.key}" for node in end if node.kind == "lock"), "a lock")


def _how(
    members: Sequence[Standing], world_size: int, end: tuple[Node, ...]
) -> tuple[SuspectHow, Mode, str]:
    who = ranks_say(sorted(member.rank for member in members))
    first = members[0]
    if len([node for node in end if node.kind == "rank"]) > 1 or any(
        node.kind == "collective" for node in end
    ):
        if is_exchange(members):
            return (
                "cycle",
                "hang",
                (
                    f"{who} wait for each other in"
                    f" {' and '.join(sorted({member.op.split(' #')[0] for member in members}))}"
                ),
            )
        one_call = (
            len([node for node in end if node.kind == "collective"]) <= 1
            and len({member.meeting for member in members}) == 1
        )
        if (
            one_call
            and len(members) == world_size
            and all(member.in_collective for member in members)
        ):
            return "stuck-inside", "hang", f"all ranks are inside {first.meeting} and none gets out"
        return "cycle", "hang", f"{who} wait for each other"
    if first.state == "crashed":
        return "failed-first", "crash", f"{who} died while the others wait"
    if first.state == "exited":
        return "left", "hang", f"{who} left while the others wait"
    if first.state == "unseen" and not first.evidence:
        return "not-visible", "hang", f"{who} could not be seen"
    place = f" at {first.where}" if first.where else ""
    if len(members) == world_size:
        return (
            "never-joined",
            "hang",
            f"{who} {'stands' if world_size == 1 else 'all stand'} still{place}",
        )
    return "never-joined", "hang", f"{who} did not join the others{place}"


def _camps(ranks: Sequence[Standing]) -> tuple[tuple[int, ...], ...]:
    meetings = meetings_of(ranks)
    camps: dict[str, list[int]] = defaultdict(list)
    for standing in ranks:
        camps[meetings.get(standing.rank, f"elsewhere at {standing.where}")].append(standing.rank)
    return tuple(
        sorted((tuple(sorted(camp)) for camp in camps.values()), key=lambda camp: (len(camp), camp))
    )


def _smallest(
    camps: tuple[tuple[int, ...], ...], members: list[Standing], by_node: dict[Node, Standing]
) -> list[Standing]:
    """The minority camp; where two camps are equally small, both."""
    if len(camps) < 2:
        return members
    least = [camp for camp in camps if len(camp) == len(camps[0])]
    ranks = {rank for camp in least for rank in camp}
    return [standing for standing in by_node.values() if standing.rank in ranks]


def divergence_group(rung: Rung, ranks: Sequence[Standing], divergence: Divergence) -> SuspectGroup:
    least = [camp for camp in divergence.camps if len(camp) == len(divergence.camps[0])][
        : 1 if divergence.kind == "left-out" else None
    ]
    suspects = tuple(sorted(rank for camp in least for rank in camp))
    victims = tuple(standing.rank for standing in ranks if standing.rank not in suspects)
    chain = tuple(
        Link(
            ranks_say(camp),
            ranks_say(sorted({standing.rank for standing in ranks} - set(camp))),
            f"is at {call} and waits there for",
            divergence.evidence,
        )
        for camp, call in zip(divergence.camps, divergence.calls, strict=True)
    )
    says = f"the ranks part at collective #{divergence.position}: {camps_say(divergence)}"
    if divergence.kind == "left-out":
        absent, present = (ranks_say(camp) for camp in divergence.camps)
        chain = (Link(present, absent, f"waits in {divergence.calls[1]} for", divergence.evidence),)
        says = f"{absent} left {divergence.calls[1]} out, where {present} waits"
    return SuspectGroup(
        cell=rung.cell,
        probe=rung.probe,
        ranks=suspects,
        how="cycle",
        says=says,
        mode="hang",
        victims=victims,
        chain=chain,
        evidence=divergence.evidence,
        world_size=len(ranks),
        hosts=tuple(
            sorted(
                {standing.host for standing in ranks if standing.rank in suspects and standing.host}
            )
        ),
        camps=divergence.camps,
        divergence=divergence,
    )


def _words(node: Node, folded: Sequence[int]) -> str:
    if node.kind == "rank":
        return (
            ranks_say(sorted(folded))
            if len(folded) > 1 and node.key == str(folded[0])
            else f"rank {node.key}"
        )
    return {"process": "pid ", "lock": "the lock on "}.get(node.kind, "") + node.key


def merged(groups: Sequence[SuspectGroup]) -> tuple[SuspectGroup, ...]:
    """Ranks that came to the same end in the same way are one group; those that still move are
    no suspects beside one that does not.
    """
    by_end: dict[tuple[str, str, str], list[SuspectGroup]] = defaultdict(list)
    for group in groups:
        by_end[(group.how, group.mode, group.says.partition(" at ")[2])].append(group)
    merged = []
    for same in by_end.values():
        first = same[0]
        ranks = tuple(sorted({rank for group in same for rank in group.ranks}))
        says = (
            first.says
            if len(same) == 1
            else first.says.replace(ranks_say(first.ranks), ranks_say(ranks), 1)
        )
        if first.how == "never-joined" and len(ranks) == first.world_size > 1:
            says = says.replace("did not join the others", "all stand still")
        merged.append(
            replace(
                first,
                ranks=ranks,
                says=says,
                victims=tuple(sorted(set(first.victims) - set(ranks))),
                chain=tuple(
                    replace(link, awaited=ranks_say(ranks))
                    if link.awaited == ranks_say(first.ranks)
                    else link
                    for link in first.chain
                ),
                evidence=tuple(dict.fromkeys(id_ for group in same for id_ in group.evidence)),
                hosts=tuple(sorted({host for group in same for host in group.hosts})),
            )
        )
    weight = {
        "failed-first": 0,
        "left": 1,
        "cycle": 2,
        "never-joined": 2,
        "stuck-inside": 3,
        "slow": 4,
        "not-visible": 5,
    }
    return tuple(sorted(merged, key=lambda group: (weight[group.how], group.ranks)))
