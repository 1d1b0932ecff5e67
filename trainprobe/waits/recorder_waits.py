"""What torch's flight recorder says of who waits for whom: the one source of edges that knows group
and sequence number.

`recorded_waits(facts, cell)` gives, for each rank that has work pending, the call that it waits in
and the ranks that have not joined it. In the wait-for graph (`edges`) each is an edge rank →
collective, and one collective → rank for each of `awaited`; a rank that is awaited and waits for
nobody is to blame, ranks that await each other are a cycle, and where nobody is awaited all have
joined and none gets out: then the network or a GPU is at fault, and no rank can be named. A stack
that was seen later and stands elsewhere goes before the dump.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainprobe.facts import Facts, FlightDump
from trainprobe.facts.collectives import CollectiveCall
from trainprobe.facts.flight_dumps import WORLD
from trainprobe.model.waits import Node, Wait
from trainprobe.waits.graph import Graph
from trainprobe.waits.standings import Standing

Key = tuple[str, tuple[int, ...]]  # a group: its name may be used again for other ranks
_Lacking = tuple[tuple[int, ...], tuple[int, ...]]  # who has not joined, who of them left no dump


@dataclass(frozen=True)
class RecordedWait:
    """One rank's wait. `meeting` is the same text for all ranks in that collective: `all_reduce #7
    of default_pg`.

    `awaited` are the members that have not joined; `undumped` are those of them that left no dump,
    so that they may have. `sure` is false where the recorder does not know the group's members
    (gloo): then `awaited` are the ranks that may be members, and an edge has half weight. `why`
    continues a sentence: what shows that they did not come.
    """

    rank: int
    call: CollectiveCall
    meeting: str
    awaited: tuple[int, ...] = ()
    undumped: tuple[int, ...] = ()
    sure: bool = True
    why: str = ""


def recorded_waits(facts: Facts, cell: str) -> dict[int, RecordedWait]:
    """Return what each rank with unfinished work waits for, by rank; empty where no dump was
    read.
    """
    dumped = {
        dump.rank
        for dump in facts.of(FlightDump, cell=cell)
        if dump.rank is not None and (dump.entries or dump.groups)
    }
    calls = [
        call
        for call in facts.of(CollectiveCall, cell=cell)
        if call.recorded and call.rank is not None
    ]
    return waits_in(calls, dumped)


def waits_in(
    calls: Iterable[CollectiveCall], dumped: Iterable[int] = ()
) -> dict[int, RecordedWait]:
    """The same from the calls alone. `dumped` are ranks that left a dump, also those whose dump
    holds no call.
    """
    by_rank: dict[int, list[CollectiveCall]] = defaultdict(list)
    for call in calls:
        if call.rank is not None:
            by_rank[call.rank].append(call)
    seen = {*by_rank, *dumped}
    newest: dict[Key, dict[int, int]] = defaultdict(dict)
    for rank, mine in by_rank.items():
        for call in mine:
            if not call.p2p:
                at = newest[key_of(call)]
                at[rank] = max(at.get(rank, call.number), call.number)
    waits = {}
    lacking: dict[tuple[Key, int], _Lacking] = {}  # thousands of ranks wait in one call
    for rank, mine in by_rank.items():
        found = [_wait(rank, call, newest, by_rank, seen, lacking) for call in _wait_points(mine)]
        if found:
            # Where one of its groups lacks somebody, that is where it hangs; work behind it only
            # queues.
            waits[rank] = next((wait for wait in found if wait.awaited), found[0])
    return _unknown_members(waits, seen)


def key_of(call: CollectiveCall) -> Key:
    """What tells a group apart; where its members are not known, the name alone."""
    return (call.group, call.members if call.members_known else ())


def group_says(call: CollectiveCall) -> str:
    """`default_pg`, `group 3 (tensor)`."""
    if call.desc == WORLD or not call.recorded:
        return call.desc or call.group
    return (
        f"group {call.group} ({call.desc})"
        if call.desc and call.desc != "undefined"
        else f"group {call.group}"
    )


def edges(waits: Mapping[int, RecordedWait]) -> tuple[Wait, ...]:
    """The same as edges of the wait-for graph: rank → collective, and collective → each rank
    that has not joined it.
    """
    inside, lacking = [], {}
    done: set[tuple[str, int, bool]] = set()
    for rank, wait in waits.items():
        meeting = Node("collective", wait.meeting)
        inside.append(
            Wait(
                Node("rank", str(rank)),
                meeting,
                f"is inside {wait.meeting}",
                evidence=wait.call.evidence,
            )
        )
        key = (wait.meeting, id(wait.awaited), wait.sure)  # thousands of ranks may share them
        for other in wait.awaited if key not in done else ():
            lacking[(wait.meeting, other)] = Wait(
                meeting,
                Node("rank", str(other)),
                "has not been joined by",
                weight=1.0 if wait.sure else 0.5,
            )
        done.add(key)
    return (*inside, *lacking.values())


def numbered(ranks: Sequence[Standing], waits: Mapping[int, RecordedWait]) -> tuple[Standing, ...]:
    """The standings with the recorder's names of the collectives, which tell apart what the
    operation's name does not; unchanged where a rank inside a collective left no record.
    """
    inside = [standing for standing in ranks if standing.in_collective]
    if not inside or any(standing.rank not in waits for standing in inside):
        return tuple(ranks)
    return tuple(
        replace(standing, op=waits[standing.rank].meeting) if standing.in_collective else standing
        for standing in ranks
    )


def circles(waits: Mapping[int, RecordedWait]) -> tuple[tuple[int, ...], ...]:
    """The sets of ranks that wait for each other and for nobody else."""
    found = []
    for end in Graph((), edges(waits)).ends():
        ranks = tuple(sorted(int(node.key) for node in end if node.kind == "rank"))
        if len(end) > 1 and ranks:
            found.append(ranks)
    return tuple(found)


def ends(waits: Mapping[int, RecordedWait]) -> tuple[int, ...]:
    """The ranks that others wait for and that wait for nobody themselves, as far as was
    recorded.
    """
    return tuple(
        sorted({other for wait in waits.values() for other in wait.awaited if other not in waits})
    )


def _wait_points(calls: Sequence[CollectiveCall]) -> list[CollectiveCall]:
    """The first unfinished call of each group: what was enqueued behind it waits for it."""
    first: dict[tuple[Key, bool], CollectiveCall] = {}
    for call in calls:
        if call.pending and call.op != "coalesced":
            first.setdefault((key_of(call), call.p2p), call)
    return sorted(first.values(), key=lambda call: call.at)


def _wait(
    rank: int,
    call: CollectiveCall,
    newest: Mapping[Key, Mapping[int, int]],
    by_rank: Mapping[int, Sequence[CollectiveCall]],
    seen: set[int],
    lacking: dict[tuple[Key, int], _Lacking],
) -> RecordedWait:
    if call.p2p:
        awaited: tuple[int, ...] = (
            ()
            if call.peer is None or _answers(rank, call, by_rank.get(call.peer, ()))
            else (call.peer,)
        )
        way = "from" if call.op == "recv" else "to"
        meeting = (
            f"{call.op} #{call.number} {way}"
            f" {'some rank' if call.peer is None else f'rank {call.peer}'} in {group_says(call)}"
        )
        return RecordedWait(
            rank,
            call,
            meeting,
            awaited,
            tuple(other for other in awaited if other not in seen),
            call.peer is not None,
        )
    key = key_of(call)
    if (key, call.number) not in lacking:
        joined = newest[key]
        absent = tuple(other for other in call.members if joined.get(other, -1) < call.number)
        lacking[key, call.number] = absent, tuple(other for other in absent if other not in seen)
    awaited, undumped = lacking[key, call.number]
    known = call.members_known or call.desc == WORLD
    return RecordedWait(
        rank,
        call,
        f"{call.op} #{call.number} of {group_says(call)}",
        awaited,
        undumped,
        known,
    )


def _answers(rank: int, call: CollectiveCall, others: Sequence[CollectiveCall]) -> bool:
    """The peer has the other half under way: then nobody is missing from the exchange."""
    other_half = {"send": "recv", "recv": "send"}.get(call.op)
    return any(
        other.pending and other.p2p and other.op == other_half and other.peer in (rank, None)
        for other in others
    )


def _unknown_members(waits: Mapping[int, RecordedWait], seen: set[int]) -> dict[int, RecordedWait]:
    """A group whose members are not known lacks somebody all the same: else its work would be done.

    Who that may be: those that wait in another such group, for there the same code was run in
    another order; else whoever waits nowhere.
    """
    settled = {}
    for rank, wait in waits.items():
        if wait.sure or wait.awaited or wait.call.p2p:
            settled[rank] = wait
            continue
        inside = {other for other, theirs in waits.items() if theirs.meeting == wait.meeting}
        crossed = [
            other
            for other, theirs in waits.items()
            if other not in inside and not theirs.sure and not theirs.call.p2p
        ]
        idle = [other for other in seen if other not in waits]
        likely = idle or crossed
        settled[rank] = RecordedWait(
            rank, wait.call, wait.meeting, tuple(sorted(likely)), (), sure=False
        )
    return settled
