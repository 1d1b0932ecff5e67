"""The earliest collective at which the ranks of a group did not do the same: the root of most desynchronised runs.

Ranks are aligned by group and by the number of the call in that group, never by time: collectives pair in order, not by name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from trainprobe.facts.collectives import CollectiveCall
from trainprobe.stacks.tree import fold_ranks
from trainprobe.waits.suspects import Divergence, DivergenceKind

Calls = Mapping[int, CollectiveCall]  # of one rank, by number

# Operations in which every rank must pass a tensor of the same size and type. In gather, scatter, all_to_all and the object
# collectives ranks may rightly pass different ones.
SAME_SIZE = frozenset({"all_reduce", "broadcast", "reduce", "all_gather", "all_gather_single", "all_gather_into_tensor", "all_reduce_coalesced"})
POINT_TO_POINT = frozenset({"send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object_list", "recv_object_list"})


def earliest_divergence(calls: Iterable[CollectiveCall], world: Sequence[int], hung: bool) -> Divergence | None:
    """Return the earliest divergence over all groups.

    `world` are the ranks of the cell. A rank that made fewer calls than its peers counts (`missing`) only when the job is `hung`:
    in a running job ranks are rightly a call apart.
    """
    groups: dict[str, dict[int, dict[int, CollectiveCall]]] = defaultdict(lambda: defaultdict(dict))
    for call in calls:
        if call.rank is not None and call.op not in POINT_TO_POINT:
            groups[call.group][call.rank][call.number] = call
    found = []
    for name, by_rank in groups.items():
        members = list(world) if name == "" else sorted(by_rank)
        divergence = _in_group({rank: by_rank.get(rank, {}) for rank in members}, hung)
        if divergence is not None:
            began = min(calls[divergence.position].at for calls in by_rank.values() if divergence.position in calls)
            found.append((began, divergence))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _in_group(by_rank: Mapping[int, Calls], hung: bool) -> Divergence | None:
    if len(by_rank) < 2 or not any(by_rank.values()):
        return None
    oldest = max((min(calls) for calls in by_rank.values() if calls), default=0)
    newest = max(max(calls) for calls in by_rank.values() if calls)
    silent_pairing: Divergence | None = None
    for position in range(oldest, newest + 1):
        here = {rank: calls[position] for rank, calls in by_rank.items() if position in calls}
        kind = _difference(here)
        if kind == "call-site":
            # Two call sites may rightly form one collective (`if rank == 0: send one way, else the other`).
            # It is a fault only when the ranks do not agree again afterwards.
            silent_pairing = silent_pairing or _divergence(_swapped(by_rank, position, kind), position, by_rank, here)
        elif kind is not None:
            return silent_pairing or _divergence(_swapped(by_rank, position, kind), position, by_rank, here)
        elif len(here) == len(by_rank):
            silent_pairing = None
        if len(here) < len(by_rank):
            if silent_pairing is not None and silent_pairing.position < position:
                return silent_pairing
            return _missing(position, by_rank, here) if hung else None
    return None


def _difference(here: Mapping[int, CollectiveCall]) -> DivergenceKind | None:
    calls = list(here.values())
    if len({call.op for call in calls}) > 1:
        return "operation"
    sites = {(call.file, call.line) for call in calls}
    sizes = {call.sizes for call in calls}
    types = {call.dtype for call in calls}
    comparable = calls[0].op in SAME_SIZE if calls else False
    if comparable and len(sizes) > 1:
        return "shape" if len(sites) == 1 else "operation"
    if comparable and len(types) > 1:
        return "dtype" if len(sites) == 1 else "operation"
    return "call-site" if len(sites) > 1 else None


def _swapped(by_rank: Mapping[int, Calls], position: int, kind: DivergenceKind) -> DivergenceKind:
    """`order` when every camp also makes the call that the others make here, only next."""
    pairs = {(_key(calls[position]), _key(calls[position + 1])) for calls in by_rank.values() if position in calls and position + 1 in calls}
    here = {_key(calls[position]) for calls in by_rank.values() if position in calls}
    if len(here) == 2 and pairs == {(first, second) for first in here for second in here if first != second}:
        return "order"
    return kind


def _key(call: CollectiveCall) -> tuple[str, str, int, tuple[int, ...], str]:
    sizes = call.sizes if call.op in SAME_SIZE else ()
    return (call.op, call.file, call.line, sizes, call.dtype if sizes else "")


def _divergence(kind: DivergenceKind, position: int, by_rank: Mapping[int, Calls], here: Mapping[int, CollectiveCall]) -> Divergence:
    camps: dict[tuple[str, str, int, tuple[int, ...], str], list[int]] = defaultdict(list)
    for rank, call in here.items():
        camps[_key(call)].append(rank)
    ordered = sorted((tuple(sorted(ranks)) for ranks in camps.values()), key=lambda camp: (len(camp), camp))
    first = [here[camp[0]] for camp in ordered]
    return Divergence(
        kind=kind,
        position=position,
        camps=tuple(ordered),
        calls=tuple(call_says(call) for call in first),
        sites=tuple((call.file, call.line) for call in first),
        evidence=tuple(dict.fromkeys(id_ for rank in by_rank if rank in here for id_ in here[rank].evidence)),
    )


def _missing(position: int, by_rank: Mapping[int, Calls], here: Mapping[int, CollectiveCall]) -> Divergence | None:
    absent = tuple(sorted(rank for rank in by_rank if rank not in here))
    if not here:
        return None
    # A rank that is still inside an earlier call is not absent: it waits there, and that call decides.
    if any(not call.finished for rank in absent for call in by_rank[rank].values()):
        return None
    present = tuple(sorted(here))
    call = here[present[0]]
    return Divergence(
        kind="missing",
        position=position,
        camps=(absent, present),  # those who did not come first, however many they are
        calls=("nothing", call_says(call)),
        sites=((call.file, call.line),),
        evidence=tuple(dict.fromkeys(id_ for other in here.values() for id_ in other.evidence)),
    )


def call_says(call: CollectiveCall) -> str:
    """`all_reduce [4, 2] float32 at train.py:88`."""
    what = f"{call.op} {list(call.sizes)} {call.dtype}" if call.dtype else call.op
    return f"{what} at {call.file.rsplit('/', 1)[-1]}:{call.line}"


def camps_say(divergence: Divergence) -> str:
    """`rank 1 called A, ranks 0,2-3 called B`."""
    parts = [f"{ranks_say(camp)} called {call}" for camp, call in zip(divergence.camps, divergence.calls, strict=True)]
    return ", ".join(parts)


def ranks_say(ranks: Sequence[int]) -> str:
    """`rank 1` or `ranks 0,2-3`."""
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {fold_ranks(ranks)}"
