"""The suspects of a job of which only dumps or logs were saved: nothing of it can be looked at
again.

What was recorded or printed of calls goes first; where a rank left none, its stack says whether it
was in a collective.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from trainprobe.facts import Facts, FlightDump, Job, JobRank, MainThread, Rung
from trainprobe.facts.collectives import CollectiveCall
from trainprobe.model.diagnosis import RankState
from trainprobe.model.waits import Node
from trainprobe.waits.absentees import absentees
from trainprobe.waits.divergence import call_says, ranks_say
from trainprobe.waits.edges import Edges
from trainprobe.waits.graph import Graph
from trainprobe.waits.hang import divergence_group, group_of_end, merged, parting
from trainprobe.waits.recorder_waits import RecordedWait, numbered
from trainprobe.waits.standings import AT_THE_STORE, IN_COLLECTIVE, OWN_WAITS, Standing
from trainprobe.waits.suspects import PROBE, SuspectGroup

LAUNCHER = "unknown"  # so the job of a case that was made from saved files calls its launcher
# What a rank stands in by itself; whoever saved its stack waited for it to come out.
_OWN_HOLDS = OWN_WAITS | {"compile"}


def only_dumps(job: Job) -> bool:
    """Was this job put together from files, not looked at while it ran?"""
    return job.launcher == LAUNCHER


def dumped_world(facts: Facts, job: Job, waits: Iterable[int]) -> list[int]:
    """The ranks of the world that the dumps tell of."""
    known = {fact.rank for fact in facts.of(JobRank, cell=job.cell) if fact.rank is not None}
    return sorted(known | {rank for rank in job.absent if rank >= 0} | set(waits))


def saved_standings(
    facts: Facts, cell: str, world: Sequence[int], waits: Mapping[int, RecordedWait]
) -> tuple[Standing, ...]:
    """One standing per rank; a rank that left neither dump nor stack is `unseen`."""
    return numbered([_standing(facts, cell, rank, waits.get(rank)) for rank in world], waits)


def saved_groups(
    facts: Facts, cell: str, ranks: Sequence[Standing], waits: Mapping[int, RecordedWait]
) -> tuple[SuspectGroup, ...]:
    """The suspects, most to blame first; empty where nobody was seen to wait."""
    rung = Rung((), cell, None, 0, PROBE, "", len(ranks), "timed_out")
    if not any(standing.in_collective or standing.leaf == AT_THE_STORE for standing in ranks):
        return _standing_still(facts, rung, ranks)
    dumped = [
        dump.rank
        for dump in facts.of(FlightDump, cell=cell)
        if dump.rank is not None and dump.format
    ]
    divergence = parting(facts, cell, ranks, dumped or None)
    if divergence is not None and (divergence.kind != "missing"):
        return (divergence_group(rung, ranks, divergence),)
    graph = Edges(facts, rung.cell, ranks, recorded=waits).graph()
    by_node = {Node("rank", str(standing.rank)): standing for standing in ranks}
    groups = []
    for ends in _alike(facts, rung.cell, graph, by_node):
        group = group_of_end(rung, ranks, graph, ends[0], divergence, by_node)
        if group is not None:
            members = [by_node[end[0]] for end in ends] if len(ends) > 1 else []
            groups.append(_said(facts, _widened(group, members), ranks, waits))
    return merged(groups)


def _alike(
    facts: Facts, cell: str, graph: Graph, by_node: Mapping[Node, Standing]
) -> list[list[tuple[Node, ...]]]:
    """The ends that somebody else waits for, together where they are ranks of which the same is
    known and for which the same wait: of thousands of ranks that are absent from one call, one is
    looked into.
    """
    found: dict[object, list[tuple[Node, ...]]] = defaultdict(list)
    for end in graph.ends():
        waiters = graph.waiters_of(end[0])
        standing = by_node.get(end[0]) if len(end) == 1 else None
        if len(end) == 1 and set(waiters) <= set(end):
            continue
        if standing is None or standing.thread is not None:
            found[end].append(end)
            continue
        last = last_recorded(facts, cell, standing.rank)
        known = bool(standing.evidence), call_says(last) if last is not None else ""
        found[waiters, replace(standing, rank=0, evidence=()), known].append(end)
    return list(found.values())


def _widened(group: SuspectGroup, members: Sequence[Standing]) -> SuspectGroup:
    """The group of the first of `members`, made that of all of them."""
    if not members:
        return group
    numbers = tuple(sorted(member.rank for member in members))
    return replace(
        group,
        ranks=numbers,
        says=group.says.replace(ranks_say(group.ranks), ranks_say(numbers), 1),
        evidence=tuple(dict.fromkeys(id_ for member in members for id_ in member.evidence)),
    )


def _standing_still(
    facts: Facts, rung: Rung, ranks: Sequence[Standing]
) -> tuple[SuspectGroup, ...]:
    """Nobody is in a collective: ranks that wait for something of their own by their stacks are
    each a suspect.
    """
    if not any(standing.leaf in _OWN_HOLDS for standing in ranks):
        return _timed_out(rung, ranks)
    graph = Edges(facts, rung.cell, ranks).graph()
    still = {Node("rank", str(standing.rank)) for standing in ranks if standing.leaf in _OWN_HOLDS}
    groups = [
        group_of_end(rung, ranks, graph, end, None)
        for end in graph.ends()
        if still & {*end, *graph.reaches(end)}
    ]
    return merged([group for group in groups if group is not None])


def _timed_out(rung: Rung, ranks: Sequence[Standing]) -> tuple[SuspectGroup, ...]:
    """Ranks whose own timer ran out, whatever they did: whoever set it meant them to be
    elsewhere by then.
    """
    late = [
        one
        for one in ranks
        if one.thread is not None
        and one.thread.timer_s is not None
        and one.thread.moved is not True
    ]
    if not late:
        return ()
    numbers, first = tuple(one.rank for one in late), late[0]
    longest = max(one.thread.timer_s or 0.0 for one in late if one.thread is not None)
    says = (
        f"{ranks_say(numbers)} stood at {first.where or 'an unknown place'} when the timer of"
        f" {longest:g} s ran out"
    )
    ids = tuple(dict.fromkeys(id_ for one in late for id_ in one.evidence))
    return (
        SuspectGroup(
            rung.cell,
            rung.probe,
            numbers,
            "stuck-inside",
            says,
            "hang",
            evidence=ids,
            world_size=max(len(ranks), 1),
        ),
    )


def lone_stack(facts: Facts, job: Job, ranks: Sequence[Standing]) -> SuspectGroup | None:
    """The one process of which somebody saved the stack, and nothing else: it stands where it
    does, and one look cannot tell whether it moves.
    """
    if len(ranks) != 1 or ranks[0].thread is None or not ranks[0].where or job.absent:
        return None
    if facts.of(FlightDump, cell=job.cell) or ranks[0].thread.moved is True:
        return None
    says = (
        f"The one process that is shown stands at {ranks[0].where}; whether it moves, one look does"
        " not tell"
    )
    return SuspectGroup(
        job.cell, PROBE, (), "stuck-inside", says, "hang", evidence=ranks[0].evidence
    )


def _said(
    facts: Facts, group: SuspectGroup, ranks: Sequence[Standing], waits: Mapping[int, RecordedWait]
) -> SuspectGroup:
    """The group's sentence in the recorder's words."""
    if group.how == "stuck-inside" and len(ranks) == 1:
        own = group.says.partition(" inside ")[2].removesuffix(" and none gets out")
        says = f"The one process that is shown waits in {own}; where the others stand is not told"
        return replace(group, says=says) if own else group
    if group.how == "stuck-inside":
        return replace(
            group, says=f"{group.says}: nobody is behind, so the network or a GPU holds them up"
        )
    blamed = frozenset(group.ranks)
    wait = next((wait for wait in waits.values() if not blamed.isdisjoint(wait.awaited)), None)
    if group.how == "not-visible" and waits:
        one = len(group.ranks) == 1
        after = f", and the others wait in {call_says(wait.call)}" if wait is not None else ""
        return replace(
            group, says=f"{ranks_say(group.ranks)} left no dump{'' if one else 's'}{after}"
        )
    camps = group.camps
    if len(camps) > 1 and all(rank in waits for camp in camps for rank in camp):
        calls = [f"{ranks_say(camp)} in {waits[camp[0]].meeting}" for camp in camps]
        verb = "stands" if len(camps[0]) == 1 else "stand"
        return replace(group, says=", ".join(calls).replace(" in ", f" {verb} in ", 1))
    if group.how == "never-joined" and wait is not None and group.ranks:
        call, who = wait.call, ranks_say(group.ranks)
        first = next(standing for standing in ranks if standing.rank == group.ranks[0])
        place = (
            f"; it stands at {first.where}"
            if first.thread is not None and first.where and len(group.ranks) == 1
            else ""
        )
        if wait.why:
            seconds = f" after {call.timeout_s:g} s" if call.timeout_s else ""
            place = "" if first.where in wait.why else place
            says = f"{who} did not join {call_says(call)}{seconds}: {wait.why}{place}"
            return replace(group, says=says)
        last = last_recorded(facts, group.cell, first.rank)
        place = place or (
            f"; the last call recorded of {'it' if len(group.ranks) == 1 else 'them'} is"
            f" {call_says(last)}"
            if last is not None
            else ""
        )
        return replace(group, says=f"{who} did not join {call_says(call)}{place}")
    return group


def last_recorded(facts: Facts, cell: str, rank: int) -> CollectiveCall | None:
    """The last call of a rank in its flight recorder's dump."""
    return max(
        (call for call in facts.of(CollectiveCall, cell=cell, rank=rank) if call.recorded),
        key=lambda call: call.at,
        default=None,
    )


def _standing(facts: Facts, cell: str, rank: int, wait: RecordedWait | None) -> Standing:
    thread = next(
        (fact for fact in facts.of(MainThread, cell=cell, rank=rank) if fact.role == "rank"), None
    )
    dump = next((fact for fact in facts.of(FlightDump, cell=cell, rank=rank) if fact.format), None)
    state: RankState = "unseen"
    if wait is not None:
        state = "waiting"
    elif thread is not None:
        state = (
            "waiting"
            if thread.leaf in IN_COLLECTIVE
            or thread.leaf == AT_THE_STORE
            or thread.leaf in OWN_WAITS
            else "computing"
        )
    where = thread.where if thread is not None else ""
    if not where and wait is not None:
        where = call_says(wait.call)
    pid = thread.pid if thread is not None and thread.pid > 0 else None
    leaf = "comm-wait" if wait is not None else thread.leaf if thread is not None else ""
    missing = absentees(facts, cell)
    call = wait.call if wait is not None else None
    shown = [fact.evidence for fact in (thread, dump, call) if fact is not None]
    if missing is not None and rank in missing.ranks:
        shown += [fact.evidence for fact in missing.facts]
        leaf = "" if leaf in IN_COLLECTIVE else leaf  # its wait is for a kernel of its own
    return Standing(
        rank=rank,
        state=state,
        pid=pid,
        where=where,
        leaf=leaf,
        op=wait.call.op if wait is not None else thread.op if thread is not None else "",
        moved=thread.moved if thread is not None else None,
        thread=thread,
        evidence=tuple(dict.fromkeys(id_ for ids in shown for id_ in ids)),
    )
