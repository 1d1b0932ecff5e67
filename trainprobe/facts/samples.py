"""What samples over some seconds showed of a main thread, and who came last to the collectives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks.arrivals import (
    AMONG_RANKS,
    Arrivals,
    Spans,
    arrivals,
    broken_up,
    computes,
    function_of,
    slept_through,
    steadily_last,
    together,
    turns_of,
    waited_in,
    without_work,
)
from trainprobe.stacks.asking import asks_in
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.loading import loads, step_share
from trainprobe.stacks.places import outside_torch, user_frame
from trainprobe.stacks.servers import serves
from trainprobe.stacks.spells import Asks, Spells, share

SELDOM, OFTEN, TWICE = 0.35, 0.6, 2
"""Of the time in collectives, on the late host and on the others; rounds that are seen on
each host, so that no single pause counts.
"""


@dataclass(frozen=True)
class Spell:
    """The main thread stood at `frames`, outermost first, from one moment to another (Unix time in
    seconds).
    """

    start: float
    end: float
    frames: tuple[Frame, ...]
    leaf: str

    @property
    def took_s(self) -> float:
        return self.end - self.start

    @property
    def inside(self) -> bool:
        """Does it wait for other ranks?"""
        return self.leaf in AMONG_RANKS


@dataclass(frozen=True)
class Samples(Fact):
    """The spells of one process's main thread over one span of sampling, in order. `woke` is how
    often it went to sleep of its own accord meanwhile, None where the kernel did not tell. `ran`
    are moments (Unix time in seconds) at which it ran for a millisecond or more between sleeps,
    `busy` from when to when it ran for most of the time.
    """

    pid: int = 0
    role: str = "rank"
    host: str = ""
    spells: tuple[Spell, ...] = ()
    woke: int | None = None
    ran: tuple[float, ...] = ()
    busy: tuple[tuple[float, float], ...] = ()

    @property
    def spans(self) -> Spans:
        whole = [(one.start, one.end, one.inside, function_of(one.frames)) for one in self.spells]
        waits = without_work(whole, [computes(one.frames) for one in self.spells], self.busy)
        return broken_up(waits, self.ran)


def parse_samples(record: Evidence) -> list[Fact]:
    """Data: {pid, role, woke, clock, stacks: [frames leaf first], spells: [[from, to, stack]]}.

    Nothing where the main thread leaves all work to others: no time of its own can be told.
    """
    data = record.data
    if record.outcome not in ("ok", "partial"):
        return []
    pid = fields.whole(data, "pid")
    if pid is None:
        raise fields.UnreadableError("samples without a pid")
    clock = fields.number(data, "clock") or 0.0
    stacks = [
        tuple(
            Frame(
                fields.text(row, "name"), fields.text(row, "file"), fields.whole(row, "line") or 0
            )
            for row in reversed(fields.each(stack, lambda one: one))
        )
        for stack in fields.items(data, "stacks")
        if isinstance(stack, list)
    ]
    if stacks and all(map(serves, stacks)):
        return []
    leaves = [waited_in(frames) for frames in stacks]
    spells = []
    for row in fields.items(data, "spells"):
        if not (isinstance(row, (list, tuple)) and len(row) == 3):
            continue
        start, end, number = row
        if isinstance(number, int) and 0 <= number < len(stacks):
            spells.append(
                Spell(clock + float(start), clock + float(end), stacks[number], leaves[number])
            )
    return [
        Samples(
            (record.id,),
            record.cell,
            record.subject.rank,
            pid=pid,
            role=fields.text(data, "role") or record.subject.role or "rank",
            host=record.subject.host or "",
            spells=tuple(spells),
            woke=fields.whole(data, "woke"),
            ran=tuple(
                clock + float(at)
                for at in fields.items(data, "ran")
                if isinstance(at, (int, float))
            ),
            busy=tuple(
                (clock + float(row[0]), clock + float(row[1]))
                for row in fields.items(data, "busy")
                if isinstance(row, (list, tuple))
                and len(row) == 2
                and all(isinstance(at, (int, float)) for at in row)
            ),
        )
    ]


def arrivals_in(samples: Iterable[Samples]) -> Arrivals:
    """Who came last, over all spans in which these ranks were sampled together. They must be of one
    host: the clocks of several differ.
    """
    spans: list[dict[int, Samples]] = []
    for one in sorted(samples, key=lambda one: one.spells[0].start if one.spells else 0.0):
        if one.rank is None or not one.spells or one.role != "rank":
            continue
        if not spans or one.rank in spans[-1]:
            spans.append({})
        spans[-1][one.rank] = one
    return together(
        [
            arrivals(
                {rank: one.spans for rank, one in span.items()},
                {
                    rank: turns_of([spell.frames for spell in one.spells])
                    for rank, one in span.items()
                },
                [rank for rank, one in span.items() if slept_through(one.spans, one.woke)],
            )
            for span in spans
        ]
    )


def by_host(samples: Iterable[Samples]) -> tuple[tuple[Samples, ...], ...]:
    """The samples of the ranks of each host."""
    found: dict[str, list[Samples]] = {}
    for one in samples:
        found.setdefault(one.host, []).append(one)
    return tuple(tuple(one) for one in found.values())


def latest_in(samples: Iterable[Samples]) -> Arrivals | None:
    """The arrivals at the host where one rank is steadily last; None where none is."""
    seen = [arrivals_in(here) for here in by_host(samples)]
    late = [one for one in seen if steadily_last(one)]
    return max(late, key=lambda one: one.share, default=None)


def longest_wait(samples: Iterable[Samples], rank: int) -> float:
    """The longest stretch, as a share of the sampled time, in which nothing shows that the others
    got on: this rank was never seen inside a collective, and no other one outside.
    """
    spans = [(one.rank, span) for one in samples for span in one.spans]
    if not spans:
        return 0.0
    begin, end = min(start for _, (start, *_) in spans), max(end for _, (_, end, *_) in spans)
    breaks = [
        moment
        for of, (start, end, inside, _) in spans
        if (of == rank) == inside
        for moment in (start, end)
    ]
    moments = sorted([begin, *breaks, end])
    return max(after - before for before, after in pairwise(moments)) / (end - begin or 1)


def loading_share(samples: Iterable[Samples]) -> dict[int, float]:
    """The share of the sampled time that each rank spends in its data loader."""
    return {rank: share(rows) for rank, rows in spells_of(samples, loads).items() if rows}


def step_shares(samples: Iterable[Samples]) -> dict[int, float]:
    """The share of the time that each rank waits for input even without its longest waits."""
    return {rank: step_share(rows) for rank, rows in spells_of(samples, loads).items()}


def asking_shares(samples: Sequence[Samples]) -> dict[int, tuple[float, float]]:
    """The share of the sampled time that each rank spends on calls to a service, and that without
    its longest stays there.
    """
    stacks = [spell.frames for one in samples for spell in one.spells]
    found = spells_of(samples, asks_in(stacks))
    return {rank: (share(rows), step_share(rows)) for rank, rows in found.items() if rows}


def spells_of(samples: Iterable[Samples], asks: Asks) -> dict[int, Spells]:
    """The spells of each numbered rank, in the order of time, with the answer to a question about
    where it stood.
    """
    found: dict[int, list[tuple[float, float, bool]]] = {}
    for one in samples:
        if one.rank is not None and one.role == "rank":
            rows = [(spell.start, spell.end, asks(spell.frames)) for spell in one.spells]
            found.setdefault(one.rank, []).extend(rows)
    return {rank: sorted(rows) for rank, rows in found.items()}


def most_at(samples: Iterable[Samples], rank: int) -> tuple[str, float]:
    """The user's line at which a rank is most of the time that it is outside of collectives, and
    the share of that time; "" where none was seen.
    """
    places: dict[str, float] = {}
    for one in samples:
        for spell in one.spells if one.rank == rank else ():
            frame = user_frame(spell.frames)
            if not spell.inside and frame is not None:
                places[frame.where] = places.get(frame.where, 0.0) + spell.took_s
    place = max(places, default="", key=lambda one: places[one])
    return place, places[place] / sum(places.values()) if place else 0.0


def spent_in(samples: Iterable[Samples], rank: int, leaf: str) -> float:
    """The share of the time that a rank is outside of collectives in which it stands in calls of
    one class (stacks.classify).
    """
    own = [spell for one in samples if one.rank == rank for spell in one.spells if not spell.inside]
    own_s = sum(spell.took_s for spell in own)
    return sum(spell.took_s for spell in own if spell.leaf == leaf) / own_s if own_s else 0.0


def own_line(samples: Iterable[Samples]) -> tuple[str, float, float]:
    """The user's line at which the main threads are most of the time without torch at work below
    it; the share of all sampled time, by the middle rank, and the seconds of samples. "" where none
    was seen.
    """
    shares: dict[int | None, dict[str, float]] = {}
    whole: dict[int | None, float] = {}
    for one in samples:
        places = shares.setdefault(one.rank, {})
        for spell in one.spells:
            whole[one.rank] = whole.get(one.rank, 0.0) + spell.took_s
            frame = user_frame(spell.frames)
            if frame is not None and not spell.inside and outside_torch(spell.frames):
                places[frame.where] = places.get(frame.where, 0.0) + spell.took_s
    lines = {place for places in shares.values() for place in places}
    middle = {
        place: median(
            places.get(place, 0.0) / whole[rank] for rank, places in shares.items() if whole[rank]
        )
        for place in lines
    }
    place = max(middle, default="", key=lambda one: middle[one])
    return place, middle.get(place, 0.0), max(whole.values(), default=0.0)


def line_shares(samples: Sequence[Samples], place: str) -> dict[int, tuple[float, float]]:
    """The share of the sampled time that each rank is at this line of the user's, without torch at
    work below it, and that without its longest stays there.
    """

    def there(frames: Sequence[Frame]) -> bool:
        frame = user_frame(frames)
        return frame is not None and frame.where == place and outside_torch(frames)

    found = spells_of(samples, there)
    return {rank: (share(rows), step_share(rows)) for rank, rows in found.items() if rows}


def joint_share(samples: Sequence[Samples], place: str) -> float:
    """The share of the time in which all were sampled that some rank is at this line of the user's,
    without torch at work below it, while each other rank is there too or waits for other ranks.
    """
    changes: list[tuple[float, int, int, int]] = []
    ranks = {one.rank for one in samples}
    for one in samples:
        for spell in one.spells:
            frame = user_frame(spell.frames)
            there = frame is not None and frame.where == place and outside_torch(spell.frames)
            held = 1 if there else 0
            kept = 1 if there or spell.inside else 0
            changes += [(spell.start, 1, held, kept), (spell.end, -1, -held, -kept)]
    seen = there_now = held_now = 0
    whole_s = joint_s = since = 0.0
    for at, one_more, held, kept in sorted(changes):
        if seen == len(ranks):
            whole_s += at - since
            joint_s += at - since if there_now and held_now == seen else 0.0
        seen, there_now, held_now, since = seen + one_more, there_now + held, held_now + kept, at
    return joint_s / whole_s if whole_s else 0.0


@dataclass(frozen=True)
class LateHost:
    """The host for whose ranks those of all other hosts wait. `inside` is the largest share of the
    sampled time that one of its ranks was in collectives, `waits` the least of the others. No
    clocks are compared, since those of hosts differ.
    """

    host: str
    ranks: tuple[int, ...]
    others: tuple[int, ...]
    inside: float
    waits: float


def between_hosts(samples: Iterable[Samples]) -> float:
    """The least share of the sampled time that a rank was in collectives, where the ranks are on
    several hosts: of a large one what takes time is what they send, or the way it goes. 0 on one
    host.
    """
    rows: dict[int, list[Samples]] = {}
    for one in samples:
        if one.rank is not None and one.spells and one.role == "rank":
            rows.setdefault(one.rank, []).append(one)
    several = len({each[0].host for each in rows.values()}) > 1
    return min(map(_inside, rows.values())) if several else 0.0


def late_host(samples: Iterable[Samples]) -> LateHost | None:
    """The only host whose ranks seldom wait while all others mostly do, through several rounds;
    None where there is none, or more than half of the hosts are like it.
    """
    rows: dict[int, list[Samples]] = {}
    for one in samples:
        if one.rank is not None and one.spells and one.role == "rank":
            rows.setdefault(one.rank, []).append(one)
    hosts = {rank: each[0].host for rank, each in rows.items()}
    inside = {rank: _inside(each) for rank, each in rows.items()}
    late = {host for rank, host in hosts.items() if inside[rank] <= SELDOM}
    if len(late) != 1 or len(set(hosts.values())) < 2:
        return None
    host = late.pop()
    ranks = tuple(sorted(rank for rank in rows if hosts[rank] == host))
    others = tuple(sorted(rank for rank in rows if hosts[rank] != host))
    most, least = max(inside[rank] for rank in ranks), min(inside[rank] for rank in others)
    rounds = min(  # whose own work is short is seldom met at it
        max(sum(map(meetings, rows[rank])) for rank in rows if hosts[rank] == each)
        for each in set(hosts.values())
    )
    if most > SELDOM or least < OFTEN or rounds < TWICE:
        return None
    return LateHost(host, ranks, others, most, least)


def _inside(samples: Sequence[Samples]) -> float:
    whole = sum(spell.took_s for one in samples for spell in one.spells)
    return sum(spell.took_s for one in samples for spell in one.spells if spell.inside) / (
        whole or 1.0
    )


def meetings(one: Samples) -> int:
    """How often the process was seen to come to a collective."""
    return sum(after.inside and not before.inside for before, after in pairwise(one.spells))
