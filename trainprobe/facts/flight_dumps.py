"""Dumps of torch's flight recorder: what each says of the groups of its rank, and one
CollectiveCall per entry.

A call is keyed by group and sequence number; the number that an entry has in its own process says
nothing about other ranks.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from trainprobe.facts.collectives import RECORDER, CollectiveCall
from trainprobe.facts.frame_rows import frame_of
from trainprobe.facts.jobs import Job
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks import places
from trainprobe.stacks.frames import Frame

WORLD = "default_pg"
MOST_MEMBERS = 1_000_000
MOST_CALLS = 5_000_000
_ROW = ("rank", "path", "bytes", "written_at", "file")  # of `dumps`
_OF_CALL = tuple(field.name for field in dataclasses.fields(CollectiveCall))[3:]  # but a Fact's own
_RANGE = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?")
# `send 1->2`, `recv 3<-0`, `recv 3<-?`: the numbers are ranks of the group.
_P2P = re.compile(r"^(send|recv) (\d{1,7})(?:->|<-)(\d{1,7}|\?)$")


class Members(tuple[int, ...]):  # noqa: SLOT001 - a tuple's subclass can hold no slots
    """Ranks of a group. Thousands of calls share one, so that its hash is computed once."""

    def __hash__(self) -> int:
        known = self.__dict__.get("hash")
        if known is None:
            known = self.__dict__["hash"] = super().__hash__()
        return int(known)


@dataclass(frozen=True)
class GroupStatus:
    """What one rank recorded of one process group. The three numbers are sequence numbers, -1
    for none; `pending` counts unfinished work.
    """

    group: str = ""
    desc: str = ""
    last_enqueued: int = -1
    last_started: int = -1
    last_completed: int = -1
    pending: int = 0
    members: tuple[int, ...] = ()


@dataclass(frozen=True)
class FlightDump(Fact):
    """`path` is where the rank wrote it, `file` its copy in the case, `written_at` Unix time in
    seconds (None: unknown).

    `version` is the recorder's own. `groups` are those that the rank took part in. `pending` counts
    its unfinished entries and `entries` those that could be read; both are 0 where the dump was
    only copied.
    """

    path: str = ""
    bytes: int = 0
    file: str = ""
    format: str = ""
    version: str = ""
    backend: str = ""
    written_at: float | None = None
    groups: tuple[GroupStatus, ...] = ()
    entries: int = 0
    pending: int = 0
    dropped: int = 0


def parse_flight_dump(record: Evidence) -> list[Fact]:
    """Read what one rank wrote, or several that ended alike (`dumps` has a row for each)."""
    data = record.data
    rank = record.subject.rank if record.subject.rank is not None else fields.whole(data, "rank")
    calls = _calls(record, rank)
    dump = FlightDump(
        evidence=(record.id,),
        cell=record.cell,
        rank=rank,
        path=fields.text(data, "path"),
        bytes=fields.whole(data, "bytes") or 0,
        file=record.files[0] if record.files else "",
        format=fields.text(data, "format"),
        version=fields.text(data, "version"),
        backend=fields.text(data, "backend"),
        written_at=fields.number(data, "written_at"),
        groups=_groups(data, calls),
        entries=len(calls),
        pending=sum(call.pending for call in calls),
        dropped=fields.whole(data, "dropped") or 0,
    )
    rows = [_row(row) for row in fields.items(data, "dumps")]
    if len({row["rank"] for row in rows}) < len(rows) or len(rows) * len(calls) > MOST_CALLS:
        raise fields.UnreadableError("more dumps than a job can have left")
    found = [tuple(getattr(call, name) for name in _OF_CALL) for call in calls]
    alike = [fact for row in rows for fact in _of_one_rank(dump, found, row)]
    return alike or [dump, *calls]


def _row(row: Any) -> dict[str, Any]:
    if not isinstance(row, Sequence) or len(row) != len(_ROW):
        raise fields.UnreadableError("a row of dumps has other columns")
    return dict(zip(_ROW, row, strict=True))


def _of_one_rank(
    dump: FlightDump, calls: Sequence[tuple[Any, ...]], row: Mapping[str, Any]
) -> list[Fact]:
    """The same facts of the rank that `row` names; `calls` have the fields of each call."""
    rank = fields.whole(row, "rank")
    own = replace(
        dump,
        rank=rank,
        path=fields.text(row, "path"),
        bytes=fields.whole(row, "bytes") or 0,
        written_at=fields.number(row, "written_at"),
        file=fields.text(row, "file"),
    )
    return [own, *(CollectiveCall(own.evidence, own.cell, rank, *call) for call in calls)]


def join_recorded_calls(facts: list[Fact]) -> list[Fact]:
    """Fill in who the members of each recorded group are, and the world ranks of peers.

    Where the witness journalled a cell too, its journal stands alone: both would tell the same
    calls twice.
    """
    journalled = {
        fact.cell for fact in facts if isinstance(fact, CollectiveCall) and fact.journalled
    }
    kept = [
        fact
        for fact in facts
        if not (isinstance(fact, CollectiveCall) and fact.recorded and fact.cell in journalled)
    ]
    kept = _newest_of_each_rank(kept)
    worlds: dict[str, set[int]] = defaultdict(set)
    sized: set[str] = set()
    counted: set[tuple[str, tuple[int, ...]]] = set()
    seen: dict[tuple[str, str], set[int]] = defaultdict(set)
    for fact in kept:
        if isinstance(fact, FlightDump) and fact.rank is not None:
            worlds[fact.cell].add(fact.rank)
        if isinstance(fact, Job) and fact.world_size and fact.world_size <= 1_000_000:
            worlds[fact.cell].update(range(fact.world_size))
            sized.add(fact.cell)
        if isinstance(fact, CollectiveCall) and fact.recorded and fact.rank is not None:
            seen[(fact.cell, fact.group)].add(fact.rank)
            if (fact.cell, fact.members) not in counted:
                counted.add((fact.cell, fact.members))
                worlds[fact.cell].update(fact.members)
    for (
        world
    ) in worlds.values():  # of a world in which rank 2 wrote a dump, ranks 0 and 1 are members too
        world.update(range(min(max(world, default=-1) + 1, 1_000_000)))
    whole = {cell: Members(sorted(world)) for cell, world in worlds.items()}
    met = {group: Members(sorted(ranks)) for group, ranks in seen.items()}
    return [
        (
            _joined(fact, whole, sized, met)
            if isinstance(fact, CollectiveCall) and fact.recorded
            else fact
        )
        for fact in kept
    ]


def _newest_of_each_rank(facts: list[Fact]) -> list[Fact]:
    """Leave out the calls of a dump where the same rank wrote a newer one of the same backend:
    --deep beside one on the disk.
    """
    newest: dict[tuple[str, int | None, str], tuple[float, tuple[str, ...]]] = {}
    for fact in facts:
        if isinstance(fact, FlightDump) and fact.entries and fact.rank is not None:
            key, found = (
                (fact.cell, fact.rank, fact.backend),
                (
                    fact.written_at or 0.0,
                    fact.evidence,
                ),
            )
            newest[key] = max(newest.get(key, found), found)
    old = {
        (fact.evidence, fact.rank)
        for fact in facts
        if isinstance(fact, FlightDump)
        and (fact.cell, fact.rank, fact.backend) in newest
        and newest[(fact.cell, fact.rank, fact.backend)][1] != fact.evidence
    }
    return [
        fact
        for fact in facts
        if not (
            isinstance(fact, CollectiveCall) and fact.recorded and (fact.evidence, fact.rank) in old
        )
    ]


def _joined(
    call: CollectiveCall,
    worlds: Mapping[str, Members],
    sized: set[str],
    seen: Mapping[tuple[str, str], Members],
) -> CollectiveCall:
    members, known = call.members, bool(call.members)
    if known and call.members_known and call.peer is None:
        return call
    if not members and call.desc == WORLD:
        members, known = worlds.get(call.cell, Members()), call.cell in sized
    elif not members:  # gloo does not say: those that were seen in it
        members = seen.get((call.cell, call.group), Members())
    # in the default group the rank in the group is the rank
    places_known = known or call.desc == WORLD
    peer = (
        members[call.peer]
        if places_known and call.peer is not None and call.peer < len(members)
        else None
    )
    return replace(call, members=members, members_known=known, peer=peer)


def _groups(data: Mapping[str, Any], calls: list[CollectiveCall]) -> tuple[GroupStatus, ...]:
    named: dict[str, CollectiveCall] = {}
    pending: dict[str, int] = defaultdict(int)
    for row, call in zip(_rows(data), calls, strict=True):
        named.setdefault(str(row.get("pg_id")), call)
        pending[str(row.get("pg_id"))] += call.pending
    found = []
    for key, row in fields.part(data, "status").items():
        if isinstance(row, Mapping):
            call = named.get(str(key), CollectiveCall())
            numbers = {
                f"last_{word}": fields.whole(row, f"last_{word}")
                for word in ("enqueued", "started", "completed")
            }
            known = {name: -1 if value is None else value for name, value in numbers.items()}
            found.append(
                GroupStatus(
                    call.group, call.desc, **known, pending=pending[str(key)], members=call.members
                )
            )
    return tuple(found)


def _rows(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        row
        for row in fields.items(data, "entries")
        if isinstance(row, Mapping) and isinstance(row.get("op"), str)
    ]


def _calls(record: Evidence, rank: int | None) -> list[CollectiveCall]:
    data = record.data
    members = {
        fields.text(row, "name"): (fields.text(row, "desc"), _members(row))
        for row in fields.items(data, "groups")
        if isinstance(row, Mapping)
    }
    table = tuple(
        frame_of(row) if isinstance(row, Mapping) else Frame()
        for row in fields.items(data, "frames")[:20_000]
    )
    return [_call(record, rank, row, members, table) for row in _rows(data)]


def _members(group: Mapping[str, Any]) -> Members:
    """`ranks` is `0-3,8` or, in older cases, a list."""
    ranks = group.get("ranks")
    return _unfolded(ranks) if isinstance(ranks, str) else Members(fields.wholes(group, "ranks"))


@lru_cache(maxsize=1024)
def _unfolded(ranks: str) -> Members:
    """In their order, which is that of the group."""
    found: list[int] = []
    for first, last in _RANGE.findall(ranks):
        low, high = int(first), int(last or first)
        if high - low > MOST_MEMBERS or len(found) > MOST_MEMBERS:
            return Members()
        found.extend(range(low, high + 1))
    return Members(found)


def _call(
    record: Evidence,
    rank: int | None,
    row: Mapping[str, Any],
    members: Mapping[str, tuple[str, tuple[int, ...]]],
    table: tuple[Frame, ...],
) -> CollectiveCall:
    p2p = _P2P.match(row["op"])
    indices = [index for index in fields.wholes(row, "frames") if 0 <= index < len(table)]
    stack = tuple(table[index] for index in reversed(indices))
    own = tuple(
        frame
        for frame in stack
        if not (
            places.is_torch(frame)
            or places.is_standard(frame)
            or places.is_native(frame)
            or places.is_ours(frame)
        )
    )
    site = places.user_frame(stack) or (own[-1] if own else Frame())
    group = fields.text(row, "group")
    desc, ranks = members.get(group, ("", ()))
    shapes, types = fields.items(row, "sizes_in"), fields.texts(row, "dtypes_in")
    is_p2p = fields.flag(row, "is_p2p") or p2p is not None
    return CollectiveCall(
        evidence=(record.id,),
        cell=record.cell,
        rank=rank,
        number=fields.whole(row, "p2p_seq" if is_p2p else "seq") or 0,
        op=p2p.group(1) if p2p else row["op"][:200],
        group=group,
        sizes=fields.wholes({"shape": shapes[0]}, "shape") if shapes else (),
        dtype=types[0] if types else "",
        file=site.file,
        line=site.line,
        function=site.name,
        at=fields.number(row, "created_at") or 0.0,
        finished=fields.flag(row, "pending") is False,
        source=RECORDER,
        members=ranks,
        members_known=bool(ranks),
        desc=desc or fields.text(row, "desc"),
        state=fields.text(row, "state"),
        retired=fields.flag(row, "retired") or False,
        p2p=is_p2p,
        peer=int(p2p.group(3)) if p2p and p2p.group(3) != "?" else None,
        frames=own[-60:],
        backend=fields.text(row, "backend"),
        timeout_s=(fields.whole(row, "timeout_ms") or 0) / 1000.0,
        numel_in=_elements(shapes),
        numel_out=_elements(fields.items(row, "sizes_out")),
    )


def _elements(shapes: Sequence[Any]) -> int | None:
    """The elements of all tensors together; None where no shape was recorded."""
    found = [fields.wholes({"shape": shape}, "shape") for shape in shapes]
    return sum(math.prod(shape) for shape in found) if found else None
