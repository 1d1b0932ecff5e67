"""The earliest collective at which the ranks of a group did not do the same: the root of most
desynchronised runs.

Ranks are aligned by group and by the number of the call in that group, never by time: collectives
pair in order, not by name. Whether the calls come from the witness's journals, from torch's flight
recorder or from the lines of a watchdog, the same rules compare them. A ring that has wrapped is
compared from where all rings still reach.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from trainprobe.facts import Facts
from trainprobe.facts.collectives import NO_NUMBER, POINT_TO_POINT, WATCHDOG, CollectiveCall
from trainprobe.facts.flight_dumps import WORLD
from trainprobe.model.ranks import name_ranks
from trainprobe.waits.recorder_waits import Key, RecordedWait, circles, group_says, key_of, waits_in
from trainprobe.waits.suspects import Divergence, DivergenceKind

Calls = Mapping[int, CollectiveCall]  # of one rank, by number
_MOST_NUMBERS = 100_000  # a hostile log may name any two

# Operations in which every rank must pass a tensor of the same size and type, by the names of
# torch's functions and of its recorder. In gather, scatter, all_to_all, the variants with `_v` and
# the object collectives ranks may rightly pass different ones.
SAME_SIZE = frozenset(
    {
        "all_reduce",
        "all_reduce_barrier",
        "allreduce_coalesced",
        "all_reduce_coalesced",
        "broadcast",
        "reduce",
        "all_gather",
        "all_gather_single",
        "all_gather_into_tensor",
        "all_gather_into_tensor_coalesced",
        "_all_gather_base",
        "ALLGATHER_coalesced",
        "reduce_scatter",
        "_reduce_scatter_base",
        "reduce_scatter_tensor",
        "reduce_scatter_single",
        "reduce_scatter_tensor_coalesced",
        "REDUCE_SCATTER_coalesced",
    }
)
# With a list of tensors "uneven sized tensors are supported" (torch.distributed.all_gather): only
# the lists as a whole must be alike.
SAME_TOTAL_OUT = frozenset({"all_gather"})
SAME_TOTAL_IN = frozenset({"reduce_scatter"})
# What all ranks put in comes out: over the whole group the elements in and out are as many.
CONSERVING = frozenset({"all_to_all", "all_to_all_single"})
SCALAR, MANY = 1, 1000  # elements: a flag or a barrier, and what no flag has


def divergence_in(
    facts: Facts,
    cell: str,
    world: Sequence[int],
    hung: bool,
    *,
    dumped: Collection[int] | None = None,
) -> Divergence | None:
    """Return the earliest divergence in a cell, from the calls that reach furthest: a journal or
    a recorder, else what the logs tell.
    """
    calls = facts.of(CollectiveCall, cell=cell)
    full = [call for call in calls if not call.partial]
    return earliest_divergence(full or calls, world, hung, dumped=dumped)


def earliest_divergence(
    calls: Iterable[CollectiveCall],
    world: Sequence[int],
    hung: bool,
    *,
    dumped: Collection[int] | None = None,
) -> Divergence | None:
    """Return the earliest divergence over all groups.

    `world` are the ranks of the cell. A rank that made fewer calls than its peers counts
    (`missing`) only when the job is `hung`: in a running job ranks are rightly a call apart.
    `dumped` are the ranks whose record was had, None for those with any call in it: where the
    recorder's dump of a rank is absent, the rank is `missing` only if nobody else is, since it may
    have joined without leaving a word.

    `missing` names those who are not waiting in another group themselves. Ranks that wait for each
    other in different groups are an `order`.
    """
    calls = list(calls)
    recorded = [call for call in calls if call.recorded]
    seen = {call.rank for call in calls if call.rank is not None} | set(dumped or ())
    found: list[tuple[float, Divergence]] = []
    for key, by_rank in _groups(calls).items():
        first = next(call for calls_of in by_rank.values() for call in calls_of.values())
        members = _members(key, first, by_rank, world)
        unseen = tuple(rank for rank in members if rank not in seen) if first.recorded else ()
        whole = first.members_known or set(by_rank) >= set(world)
        divergence = _in_group(
            {rank: by_rank.get(rank, {}) for rank in members if rank not in unseen},
            hung,
            whole and not unseen,
        )
        if divergence is None and hung and unseen:
            divergence = _no_dump(by_rank, unseen)
        if divergence is not None:
            began = min(
                calls_of[divergence.position].at
                for calls_of in by_rank.values()
                if divergence.position in calls_of
            )
            found.append((began, divergence))
    if hung and recorded:
        found = _to_blame(found, recorded, seen)
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _groups(
    calls: Iterable[CollectiveCall],
) -> Mapping[Key, Mapping[int, dict[int, CollectiveCall]]]:
    """By group, rank and number. Several entries of one number are the parts of one coalesced
    collective: the first stands for all.
    """
    groups: dict[Key, dict[int, dict[int, CollectiveCall]]] = defaultdict(lambda: defaultdict(dict))
    for call in calls:
        if (
            call.rank is not None
            and call.number != NO_NUMBER
            and call.op
            and (call.op not in POINT_TO_POINT or _gathers([call]))
            and not call.p2p
        ):
            mine = groups[key_of(call)][call.rank]
            if call.number not in mine or not call.recorded:
                mine[call.number] = call
    return groups


def _members(
    key: Key, first: CollectiveCall, by_rank: Mapping[int, Calls], world: Sequence[int]
) -> list[int]:
    if first.recorded:
        return sorted(
            {
                *first.members,
                *by_rank,
                *(world if first.desc == WORLD and not first.members_known else ()),
            }
        )
    return list(world) if first.journalled and key[0] == "" else sorted(by_rank)


def _in_group(by_rank: Mapping[int, Calls], hung: bool, whole: bool) -> Divergence | None:
    """`whole`: the calls of all members of the group are known."""
    if len(by_rank) < 2 or not any(by_rank.values()):
        return None
    oldest = max((min(calls) for calls in by_rank.values() if calls), default=0)
    newest = max(max(calls) for calls in by_rank.values() if calls)
    partial = any(call.partial for calls in by_rank.values() for call in calls.values())
    silent_pairing: Divergence | None = None
    for position in (
        range(oldest, newest + 1)
        if not partial and newest - oldest < _MOST_NUMBERS
        # what was not printed tells nothing
        else sorted({number for calls in by_rank.values() for number in calls})
    ):
        here = {rank: calls[position] for rank, calls in by_rank.items() if position in calls}
        kind = _difference(here, whole and len(here) == len(by_rank))
        if kind == "call-site":
            # Two call sites may rightly form one collective (`if rank == 0: send one way, else the
            # other`). It is a fault only when the ranks do not agree again afterwards.
            silent_pairing = silent_pairing or _divergence(
                _swapped(by_rank, position, kind), position, by_rank, here
            )
        elif kind is not None:
            return silent_pairing or _divergence(
                _swapped(by_rank, position, kind), position, by_rank, here
            )
        elif len(here) == len(by_rank):
            silent_pairing = None
        if len(here) < len(by_rank):
            if silent_pairing is not None and silent_pairing.position < position:
                return silent_pairing
            if any(call.partial for call in here.values()):
                continue  # who printed nothing of it may have been killed first
            return _missing(position, by_rank, here) if hung else None
        if all(not call.journalled and call.pending for call in here.values()):
            # all have joined and none gets out: what some have enqueued behind it and others have
            # not tells nothing
            return None
    return None


def _difference(here: Mapping[int, CollectiveCall], whole: bool) -> DivergenceKind | None:
    calls = list(here.values())
    if len({call.op for call in calls}) > 1:
        return "operation"
    sites = {site for call in calls if (site := _site(call)) is not None}
    if not _sizes_fit(calls, whole):
        sizes = [call.numel_in or 0 for call in calls]
        apart = len(sites) > 1 or (
            not sites and min(sizes) <= SCALAR and max(sizes) >= MANY
        )  # a flag and gradients are not one call
        return "operation" if apart else "shape"
    if calls and calls[0].op in SAME_SIZE and len({call.dtype for call in calls}) > 1:
        return "dtype" if len(sites) <= 1 else "operation"
    return "call-site" if len(sites) > 1 else None


def _sizes_fit(calls: Sequence[CollectiveCall], whole: bool) -> bool:
    """May these calls of one operation form one collective? True where too little is known."""
    op = calls[0].op if calls else ""
    put_in, come_out = [call.numel_in for call in calls], [call.numel_out for call in calls]
    if op in SAME_TOTAL_OUT and None not in come_out:
        return len(set(come_out)) < 2
    if op in SAME_TOTAL_IN and None not in put_in:
        return len(set(put_in)) < 2
    if op in SAME_SIZE:
        return (
            len({call.sizes for call in calls}) < 2
            and len({*put_in} - {None}) < 2  # a line that was cut off tells no size
            and len({*come_out} - {None}) < 2
        )
    if op in CONSERVING and whole and None not in put_in and None not in come_out:
        return sum(put_in) == sum(come_out)  # type: ignore[arg-type] # None was asked for
    if op in POINT_TO_POINT and _gathers(calls):
        return len(set(put_in)) < 2
    return True


def _gathers(calls: Sequence[CollectiveCall]) -> bool:
    """Does each call give out the same multiple of what it takes in? Of several calls in one the
    watchdog names no kind (`coalesced`); those that do are gathers, and no sends.
    """
    ratios = {
        divmod(call.numel_out, call.numel_in) if call.numel_in and call.numel_out else (0, 0)
        for call in calls
    }
    return len(ratios) == 1 and next(iter(ratios))[0] > 1 and next(iter(ratios))[1] == 0


def _site(call: CollectiveCall) -> Hashable:
    """Where a call was made. Of the recorder all frames but torch's and Python's count: one wrapper
    may be called from two places.

    Paths differ between containers, so there the file's name alone counts. None where the record
    has no frames (JSON, or off).
    """
    if call.journalled:
        return (call.file, call.line)
    return tuple((frame.base, frame.line, frame.name) for frame in call.frames) or None


def _swapped(by_rank: Mapping[int, Calls], position: int, kind: DivergenceKind) -> DivergenceKind:
    """`order` when every camp also makes the call that the others make here, only next."""
    pairs = {
        (_key(calls[position]), _key(calls[position + 1]))
        for calls in by_rank.values()
        if position in calls and position + 1 in calls
    }
    here = {_key(calls[position]) for calls in by_rank.values() if position in calls}
    if len(here) == 2 and pairs == {
        (first, second) for first in here for second in here if first != second
    }:
        return "order"
    return kind


def _key(call: CollectiveCall) -> Hashable:
    sized = call.op in SAME_SIZE
    return (
        call.op,
        _site(call),
        (call.sizes, call.numel_in, call.numel_out, call.dtype) if sized else (),
    )


def _divergence(
    kind: DivergenceKind,
    position: int,
    by_rank: Mapping[int, Calls],
    here: Mapping[int, CollectiveCall],
) -> Divergence:
    camps: dict[Hashable, list[int]] = defaultdict(list)
    for rank, call in here.items():
        camps[
            (_key(call), call.numel_in, call.numel_out) if kind == "shape" else _key(call)
        ].append(rank)
    ordered = sorted(
        (tuple(sorted(ranks)) for ranks in camps.values()), key=lambda camp: (len(camp), camp)
    )
    first = [here[camp[0]] for camp in ordered]
    apart = _parting_frames(first)
    return Divergence(
        kind=kind,
        position=position,
        camps=tuple(ordered),
        calls=tuple(call_says(call, place) for call, place in zip(first, apart, strict=True)),
        sites=apart,
        evidence=tuple(
            dict.fromkeys(id_ for rank in by_rank if rank in here for id_ in here[rank].evidence)
        ),
        ops=tuple(call.op for call in first),
        followed=all(any(number > position for number in by_rank[rank]) for rank in here),
    )


def _parting_frames(calls: Sequence[CollectiveCall]) -> tuple[tuple[str, int], ...]:
    """The place of each call; where several go through one wrapper, the innermost frame at which
    they part.
    """
    sites = [(call.file, call.line) for call in calls]
    if len(set(sites)) == 1 and all(call.frames for call in calls):
        for depth in range(1, min(len(call.frames) for call in calls) + 1):
            frames = [call.frames[-depth] for call in calls]
            if len({(frame.base, frame.line) for frame in frames}) > 1:
                return tuple((frame.file, frame.line) for frame in frames)
    return tuple(sites)


def _missing(
    position: int, by_rank: Mapping[int, Calls], here: Mapping[int, CollectiveCall]
) -> Divergence | None:
    absent = tuple(sorted(rank for rank in by_rank if rank not in here))
    if not here:
        return None
    # A rank that is still inside an earlier call is not absent: it waits there, and that call
    # decides.
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


def _no_dump(by_rank: Mapping[int, Calls], unseen: tuple[int, ...]) -> Divergence | None:
    """All that left a dump wait in the same call: then those that left none are the ones that
    never came, or were gone.
    """
    waiting = {
        rank: next((call for _, call in sorted(calls.items()) if call.pending), None)
        for rank, calls in by_rank.items()
    }
    positions = {call.number if call is not None else None for call in waiting.values()}
    position = next(iter(positions)) if len(positions) == 1 else None
    if position is None:
        return None
    present = tuple(sorted(by_rank))
    call = by_rank[present[0]][position]
    ids = tuple(dict.fromkeys(id_ for rank in present for id_ in by_rank[rank][position].evidence))
    return Divergence(
        "missing",
        position,
        (unseen, present),
        ("nothing that was recorded", call_says(call)),
        ((call.file, call.line),),
        ids,
    )


def _to_blame(
    found: list[tuple[float, Divergence]], recorded: Sequence[CollectiveCall], seen: Collection[int]
) -> list[tuple[float, Divergence]]:
    """A rank that is missing from one group because it waits in another is a victim: drop it,
    and where all are such, name the circle.
    """
    waits = waits_in(recorded, seen)
    kept = []
    for began, divergence in found:
        if divergence.kind != "missing":
            kept.append((began, divergence))
            continue
        absent, present = divergence.camps
        idle = tuple(rank for rank in absent if rank not in waits)
        if idle:
            kept.append(
                (
                    began,
                    Divergence(
                        "missing",
                        divergence.position,
                        (idle, present),
                        divergence.calls,
                        divergence.sites,
                        divergence.evidence,
                    ),
                )
            )
    if kept:
        return kept
    for circle in circles(waits)[:1]:
        skipped = _left_out(circle, waits, recorded)
        if skipped is not None:
            return [skipped]
        camps: dict[str, list[int]] = defaultdict(list)
        for rank in circle:
            camps[_dimension(waits[rank])].append(rank)
        ordered = sorted(
            (tuple(sorted(camp)) for camp in camps.values()), key=lambda camp: (len(camp), camp)
        )
        first = [waits[camp[0]].call for camp in ordered]
        ids = tuple(dict.fromkeys(id_ for rank in circle for id_ in waits[rank].call.evidence))
        several = [len({waits[rank].meeting for rank in camp}) > 1 for camp in ordered]
        words = tuple(
            call_says(call, of="a group of " + call.desc if many else "")
            for call, many in zip(first, several, strict=True)
        )
        kept.append(
            (
                min(call.at for call in first),
                Divergence(
                    "order",
                    first[0].number,
                    tuple(ordered),
                    words,
                    tuple((c.file, c.line) for c in first),
                    ids,
                ),
            )
        )
    for rank, wait in waits.items():
        if (
            not kept and wait.call.p2p and any(other not in waits for other in wait.awaited)
        ):  # a send or receive without its other half
            call = wait.call
            words = (
                "nothing" if not wait.undumped else "nothing that was recorded",
                call_says(call),
            )
            kept.append(
                (
                    call.at,
                    Divergence(
                        "missing",
                        call.number,
                        (wait.awaited, (rank,)),
                        words,
                        ((call.file, call.line),),
                        call.evidence,
                    ),
                )
            )
    return kept


def _left_out(
    circle: Sequence[int], waits: Mapping[int, RecordedWait], recorded: Sequence[CollectiveCall]
) -> tuple[float, Divergence] | None:
    """Of ranks that wait for each other the one that left a call out of a group which all other
    groups of that dimension of the mesh have made.

    Data parallel groups make the same calls side by side: where one lacks a member at a number that
    its siblings have finished, that member is the odd one.
    """
    done: dict[tuple[str, Key], dict[int, int]] = defaultdict(dict)
    for call in recorded:
        if (
            call.rank is not None
            and call.finished
            and call.members_known
            and not call.p2p
            and call.desc not in ("", WORLD, "undefined")
        ):
            numbers = done[call.desc, key_of(call)]
            numbers[call.rank] = max(numbers.get(call.rank, call.number), call.number)
    for rank in circle:
        wait = waits[rank]
        call, own = wait.call, set(wait.call.members)
        siblings = [
            numbers
            for (desc, (_, members)), numbers in done.items()
            if desc == call.desc and own.isdisjoint(members) and set(numbers) == set(members)
        ]
        if (
            call.members_known
            and not call.p2p
            and wait.awaited
            and siblings
            and all(min(numbers.values()) >= call.number for numbers in siblings)
        ):
            present = tuple(other for other in call.members if other not in wait.awaited)
            where = ((call.file, call.line),)
            return call.at, Divergence(
                "left-out",
                call.number,
                (wait.awaited, present),
                ("nothing", call_says(call)),
                where,
                call.evidence,
            )
    return None


def _dimension(wait: RecordedWait) -> str:
    """What ranks of a camp have in common: the groups along one dimension of a mesh are as many
    as the other dimension is long, and have one description.
    """
    call = wait.call
    return (
        f"{call.op} of {call.desc}"
        if call.members_known
        and call.desc
        and call.desc not in (WORLD, "undefined")
        and not call.p2p
        else wait.meeting
    )


def call_says(call: CollectiveCall, site: tuple[str, int] | None = None, *, of: str = "") -> str:
    """`all_reduce [4, 2] float32 at train.py:88`, with the group where the recorder names one
    that is not the whole world.
    """
    what = f"{call.op} {list(call.sizes)} {call.dtype}" if call.dtype else call.op
    if call.source == WATCHDOG:
        return _from_log_says(call)
    if call.p2p and call.peer is not None:
        what += f" {'from' if call.op == 'recv' else 'to'} rank {call.peer}"
    if call.recorded and call.desc != WORLD:
        what += f" in {of or group_says(call)}"
    file, line = site or (call.file, call.line)
    return f"{what} at {file.rsplit('/', 1)[-1]}:{line}" if file else what


def _from_log_says(call: CollectiveCall) -> str:
    """`all_reduce #17 of 8 elements`, `all_gather #17 of 8 elements to 32`."""
    what = call.op or "a collective"
    number = f" #{call.number}" if call.number != NO_NUMBER else ""
    if call.numel_in is None:
        return f"{what}{number}"
    to = (
        f" to {call.numel_out}"
        if call.numel_out is not None and call.numel_out != call.numel_in
        else ""
    )
    return f"{what}{number} of {call.numel_in} element{'' if call.numel_in == 1 else 's'}{to}"


def camps_say(divergence: Divergence) -> str:
    """`rank 1 called A, ranks 0,2-3 called B`."""
    parts = [
        f"{ranks_say(camp)} called {call}"
        for camp, call in zip(divergence.camps, divergence.calls, strict=True)
    ]
    return ", ".join(parts)


def ranks_say(ranks: Sequence[int]) -> str:
    """`rank 1` or `ranks 0 and 2-3`."""
    return name_ranks(ranks, nobody="no rank")


def claims_say(claimed: Mapping[int, Sequence[str]]) -> str:
    """Two hosts with one rank: two jobs, or ranks whose numbers nobody told."""
    ranks = sorted(claimed)
    where = list(dict.fromkeys(host for rank in ranks for host in claimed[rank]))
    several = (
        f"{ranks_say(ranks)} {'is' if len(ranks) == 1 else 'are'} on"
        f" {', '.join(where[:4])}{' and others' if len(where) > 4 else ''}"
    )
    return (
        f"{several[:1].upper()}{several[1:]}: these are several jobs, or their processes do not"
        " know their rank. Of each rank one process is judged."
    )
