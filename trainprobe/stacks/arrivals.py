"""Who comes last to the collectives of a job that moves, from samples of its main threads. Both the
code that decides whether to sample on and the code that judges ask here.

A rank holds up the others while it alone is outside of collectives. A round ends when another one
has left as well, or when it has been to a collective itself. Times of several ranks come from
several clocks, so they are laid over each other by the moments at which ranks leave their
collectives, which they do together.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from trainprobe.model.unnumbered import pid_of
from trainprobe.stacks.classify import classify
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import user_frame
from trainprobe.stacks.rules import RPC
from trainprobe.stacks.spells import Taken, frames_of

GRID_S = 0.02
NEAR_S = 0.15
"""Two clocks differ by no more: each begins when its sampler does."""
LEAST_SAMPLES = 2
"""Who is late for less may be late by the edges of its samples alone."""
LONG_S = 0.3
"""Who is alone outside for as long is waited for, even if it was the first to leave: what the
others did meanwhile fell between samples.
"""
HELD_SHARE = 0.1
"""A rank that is slower by a fifth holds the others up for a sixth of the time; some of that is
lost between samples.
"""
CHANCE = 0.02
"""How likely it may be that ranks as fast as each other show the same."""
MUCH_SHARE, MUCH_CHANCE = 0.5, 0.07
"""Where the others wait for one rank for most of the time, fewer rounds are enough."""
STEADILY = 0.8
"""Of the rounds. Where steps differ by a tenth, who is slower by a fifth is last in nine of ten."""
HINT_SHARE = 0.06
MOSTLY, FEW, MAY_BE = 0.7, 5, 0.3
"""More samples help where one rank is last to most rounds, and these are few or chance unlikely."""
OWN_WORK = 0.7
"""A rank that is late while it does what no other does, such as saving, may do so now and then."""
SLEPT_S = 0.3
"""Samples break up shorter waits by themselves."""
EDGE_S = 0.1
"""What a thread ran near the edge of a wait belongs to what samples show beside it."""
AMONG_RANKS = frozenset({"comm-wait", "gpu-wait", "store-wait"})
"""What `waited_in` says of a thread that waits for other ranks."""
Spans = Sequence[tuple[float, float, bool, str]]
"""(from, to, inside a collective, the user's function), in seconds, in order."""


@dataclass(frozen=True)
class Arrivals:
    """`span_s` seconds that all `ranks` were sampled in. For each rank: `last`, the rounds that it
    came last to, and `held_s`, for how long the others waited for it alone; `apart_s` of that it
    was in functions in which no other rank was seen. `turns` is how often it came by that line of
    its outermost loop that it came by most. `inside_s` is for how long it was in collectives.
    """

    ranks: tuple[int, ...]
    span_s: float = 0.0
    last: Mapping[int, int] = field(default_factory=dict)
    held_s: Mapping[int, float] = field(default_factory=dict)
    apart_s: Mapping[int, float] = field(default_factory=dict)
    turns: Mapping[int, int] = field(default_factory=dict)
    inside_s: Mapping[int, float] = field(default_factory=dict)
    stays: Mapping[int, int] = field(default_factory=dict)
    from_stay: int | None = None
    in_stay: int | None = None

    @property
    def rounds(self) -> int:
        return sum(self.last.values())

    @property
    def times_last(self) -> tuple[int, int]:
        """To how many rounds the latest rank came last, and of how many. Where no other one ever
        did, the times that it alone was outside for long are rounds as well.
        """
        rank = self.latest
        if rank is None:
            return 0, self.rounds
        last, stays = self.last.get(rank, 0), self.stays.get(rank, 0)
        if last == self.rounds and stays == sum(self.stays.values()):
            return max(last, stays), max(last, stays)
        return last, self.rounds

    @property
    def latest(self) -> int | None:
        """The rank that the others waited for longest; None where nobody waited for one alone."""
        rank = max(self.ranks, key=lambda one: self.held_s.get(one, 0.0), default=None)
        return rank if rank is not None and self.held_s.get(rank, 0.0) > 0 else None

    @property
    def share(self) -> float:
        """The share of the time that the others wait longer than the latest rank, by the middle
        one of them.
        """
        rank = self.latest
        others = [self.inside_s.get(other, 0.0) for other in self.ranks if other != rank]
        if rank is None or not others or self.span_s <= 0:
            return 0.0
        return (median(others) - self.inside_s.get(rank, 0.0)) / self.span_s


def arrivals(
    timelines: Mapping[int, Spans], turns: Mapping[int, int], asleep: Collection[int] = ()
) -> Arrivals:
    """Lay one span of samples of several ranks over each other. Those `asleep` slept all along."""
    taking_part = {rank for rank, spans in timelines.items() if _takes_part(rank, spans)}
    # who slept while others went through several rounds is no part of these, as a server of theirs
    if max((len(_exits(spans)) for spans in timelines.values()), default=0) > 1:
        taking_part -= set(asleep)
    ranks = tuple(sorted(taking_part))
    if len(ranks) < 2:
        return Arrivals(ranks)
    aligned = _aligned({rank: timelines[rank] for rank in ranks})
    begin = max(spans[0][0] for spans in aligned.values())
    end = min(spans[-1][1] for spans in aligned.values())
    steps = max(0, int((end - begin) / GRID_S))
    grid = {rank: _on_grid(spans, begin, steps) for rank, spans in aligned.items()}
    last, held, apart = dict.fromkeys(ranks, 0), dict.fromkeys(ranks, 0), dict.fromkeys(ranks, 0)
    shared = {
        rank: {
            place for other in ranks if other != rank for inside, place in grid[other] if not inside
        }
        for rank in ranks
    }
    alone: int | None = None  # the only rank outside in the sample before
    late, samples = False, 0
    holder: int | None = None  # of the round under way
    counted: int | None = None  # who has come last and not been to a collective since
    stays = dict.fromkeys(ranks, 0)
    stayed: int | None = None  # who has been alone outside for long, and no other one since
    began: int | None = None  # whose stay was the first thing seen of any rank outside
    out: set[int] = set()
    for at in range(steps):
        outside = [rank for rank in ranks if not grid[rank][at][0]]
        out.update(outside)
        stayed = stayed if {*outside} <= {stayed} else None
        counted = counted if counted in outside else None
        if len(outside) != 1:
            alone = None
            holder = None if outside else holder
            continue
        rank = outside[0]
        if rank != alone:
            # a rank that was inside just now is the first to leave
            late, alone, samples = at == 0 or not grid[rank][at - 1][0], rank, 0
        samples += 1
        if samples * GRID_S >= LONG_S and stayed != rank:
            stays[rank], stayed = stays[rank] + 1, rank
            began = rank if out == {rank} else began
        if late and at >= samples and samples == LEAST_SAMPLES and holder != rank:
            last[rank], holder, counted = last[rank] + 1, rank, rank
        if samples * GRID_S >= LONG_S and at >= samples and counted != rank:
            last[rank], holder, counted = last[rank] + 1, rank, rank
            held[rank] += 0 if late else samples - 1
            late = True
        held[rank] += late
        apart[rank] += late and grid[rank][at][1] not in shared[rank]
    return Arrivals(
        ranks,
        steps * GRID_S,
        last,
        {rank: count * GRID_S for rank, count in held.items()},
        {rank: count * GRID_S for rank, count in apart.items()},
        turns,
        {rank: sum(inside for inside, _ in row) * GRID_S for rank, row in grid.items()},
        stays,
        began,
        stayed,
    )


def _takes_part(rank: int, spans: Spans) -> bool:
    """Whether the process is one of those that meet: a process without a number that is never seen
    in a collective may be a server beside the ranks.
    """
    return bool(spans) and (pid_of(rank) is None or any(inside for _, _, inside, _ in spans))


def slept_through(spans: Spans, woke: int | None) -> bool:
    """Did a thread stay in one sleep outside of collectives? It `woke` so often meanwhile, once
    perhaps for the sampler; None where that is not known.
    """
    return len(spans) == 1 and not spans[0][2] and woke is not None and woke <= 1


def turns_of(stacks: Sequence[Sequence[Frame]]) -> int:
    """How often a thread came by one line of its outermost loop, by its stacks in order: the line
    that it came by most, in the outermost function whose line changes.
    """
    rows = [[(frame.file, frame.name, frame.line) for frame in stack] for stack in stacks if stack]
    for depth in range(min(map(len, rows), default=0)):
        lines = [row[depth] for row in rows]
        if len(set(lines)) > 1:
            came = [line for before, line in zip([None, *lines], lines) if line != before]
            return max(came.count(line) for line in set(came))
    return 0


def by_record(data: Mapping[str, Any]) -> tuple[Spans, int]:
    """The spans and the turns in a record of samples that this program has written itself."""
    stacks = frames_of(data)
    seen = [(waited_in(frames) in AMONG_RANKS, function_of(frames)) for frames in stacks]
    clock = data["clock"]
    spans: Spans = [
        (clock + start, clock + end, *seen[stack]) for start, end, stack in data["spells"]
    ]
    spans = without_work(
        spans,
        [computes(stacks[stack]) for _, _, stack in data["spells"]],
        [(clock + start, clock + end) for start, end in data.get("busy", ())],
    )
    spans = broken_up(spans, [clock + at for at in data.get("ran", ())])
    return spans, turns_of([stacks[stack] for _, _, stack in data["spells"]])


def waited_in(frames: Sequence[Frame]) -> str:
    """The leaf class (stacks.classify) of a stack. A call of torch's RPC is one of its own: it asks
    one rank, which answers beside its own work, and no other needs to come to it.
    """
    place = classify(frames)
    return RPC if place.op == RPC else place.leaf


def computes(frames: Sequence[Frame]) -> bool:
    """May a thread with this stack compute where it seems to wait? `backward` does both."""
    return classify(frames).op == "backward"


def without_work(
    spans: Spans, computing: Sequence[bool], busy: Sequence[tuple[float, float]]
) -> list[tuple[float, float, bool, str]]:
    """Cut what a thread computed out of its waits: of the spans that may be either, the times for
    which it was `busy` count as outside of collectives.
    """
    found: list[tuple[float, float, bool, str]] = []
    for (start, end, inside, place), either in zip(spans, computing):
        at = start
        for began, ended in busy if inside and either else ():
            low, high = max(at, began), min(end, ended)
            if high - low < GRID_S:
                continue
            if low > at:
                found.append((at, low, True, place))
            found.append((low, high, False, place))
            at = high
        if at < end or at == start:
            found.append((at, end, inside, place))
    return found


def broken_up(spans: Spans, ran: Sequence[float]) -> list[tuple[float, float, bool, str]]:
    """Break up waits in collectives where the thread `ran` meanwhile: it had left the one and came
    to the next, and what it did between them took less than the interval of the samples.
    """
    found: list[tuple[float, float, bool, str]] = []
    moments = sorted(ran)
    for begin, end, inside, place in spans:
        start = begin
        if inside and end - start >= SLEPT_S:
            near, far = bisect_left(moments, start + EDGE_S), bisect_left(moments, end - EDGE_S)
            for at in moments[near:far]:
                if at - start >= EDGE_S:
                    found += [(start, at, True, place), (at, at + GRID_S, False, "")]
                    start = at + GRID_S
        found.append((start, end, inside, place))
    return found


def arrivals_of(span: Taken) -> Arrivals:
    """Who came last in one span of sampling, out of the records of all ranks."""
    seen = {rank: by_record(data) for rank, data in span.items()}
    return arrivals(
        {rank: spans for rank, (spans, _) in seen.items()},
        {rank: turns for rank, (_, turns) in seen.items()},
        [rank for rank, (spans, _) in seen.items() if slept_through(spans, span[rank].get("woke"))],
    )


def function_of(frames: Sequence[Frame]) -> str:
    """The user's innermost function, in words that compare."""
    frame = user_frame(frames)
    return f"{frame.file} {frame.name}" if frame is not None else ""


def together(parts: Sequence[Arrivals]) -> Arrivals:
    """Several spans as one, in the order of time."""
    ranks = tuple(sorted({rank for part in parts for rank in part.ranks}))

    def sums(name: str) -> dict[int, float]:
        return {rank: sum(getattr(part, name).get(rank, 0) for part in parts) for rank in ranks}

    stays = {rank: int(count) for rank, count in sums("stays").items()}
    for before, after in zip(parts, parts[1:]):
        if before.in_stay is not None and before.in_stay == after.from_stay:
            stays[before.in_stay] -= 1  # the same stay in both
    return Arrivals(
        ranks,
        sum(part.span_s for part in parts),
        {rank: int(count) for rank, count in sums("last").items()},
        sums("held_s"),
        sums("apart_s"),
        {rank: int(count) for rank, count in sums("turns").items()},
        sums("inside_s"),
        stays,
        parts[0].from_stay if parts else None,
        parts[-1].in_stay if parts else None,
    )


def steadily_last(seen: Arrivals) -> bool:
    """Does the latest rank hold up the others for much of the time, and in so many of the rounds
    that chance does not explain it?
    """
    if seen.latest is None or seen.share < HELD_SHARE:
        return False
    may = MUCH_CHANCE if seen.share >= MUCH_SHARE else CHANCE
    last, rounds = seen.times_last
    return last >= STEADILY * rounds and by_chance(seen) <= may


def by_chance(seen: Arrivals) -> float:
    """How likely some rank comes last to as many rounds where all are as fast as each other.

    Rounds in which nobody is late go by unseen. That matters where a rank does work of its own:
    then each turn of its loop counts as a round, unless the others lose most of the time to it.
    """
    rank, world = seen.latest, len(seen.ranks)
    last, rounds = seen.times_last
    if rank is None or not rounds:
        return 1.0
    alone = seen.apart_s.get(rank, 0.0) >= OWN_WORK * seen.held_s.get(rank, 0.0)
    if alone and seen.share < MUCH_SHARE:
        rounds = max(rounds, seen.turns.get(rank, 0))
    one = sum(
        math.comb(rounds, count) * (1 / world) ** count * (1 - 1 / world) ** (rounds - count)
        for count in range(last, rounds + 1)
    )
    return min(1.0, world * one)


def worth_more(seen: Arrivals) -> bool:
    """Would more samples settle whether one rank is steadily late?"""
    rank = seen.latest
    if rank is None or seen.share < HINT_SHARE or steadily_last(seen):
        return False
    few = seen.rounds < FEW
    if few and seen.held_s[rank] >= STEADILY * sum(seen.held_s.values()):
        return True  # of few rounds a short one may be of another rank
    return seen.last.get(rank, 0) >= MOSTLY * seen.rounds and (few or by_chance(seen) < MAY_BE)


def too_long(seen: Arrivals) -> bool:
    """Is one rank late, but the rounds too few to say whether it always is?"""
    return worth_more(seen) and seen.last.get(seen.latest or 0, 0) == seen.rounds


def _aligned(timelines: Mapping[int, Spans]) -> dict[int, Spans]:
    """The same by the clock of the first rank."""
    first, *others = timelines
    exits = _exits(timelines[first])
    found = {first: timelines[first]}
    for rank in others:
        apart = [
            moment - near
            for moment in _exits(timelines[rank])
            if (near := _nearest(exits, moment)) is not None and abs(moment - near) <= NEAR_S
        ]
        shift = median(apart) if apart else 0.0
        found[rank] = [
            (start - shift, end - shift, inside, place)
            for start, end, inside, place in timelines[rank]
        ]
    return found


def _widened(spans: Spans) -> Spans:
    """Spans in which what a thread did between two collectives takes a step of the grid at least:
    else it would lie there by chance.
    """
    found = list(spans)
    for at in range(1, len(found) - 1):
        begin, end, inside, place = found[at]
        lacks = GRID_S - (end - begin)
        if not inside and 0 < lacks < GRID_S and found[at - 1][2] and found[at + 1][2]:
            before, after = found[at - 1], found[at + 1]
            begin, end = begin - lacks / 2, end + lacks / 2
            found[at - 1] = (before[0], begin, *before[2:])
            found[at] = (begin, end, inside, place)
            found[at + 1] = (end, after[1], *after[2:])
    return found


def _exits(spans: Spans) -> list[float]:
    return [
        end for (_, end, inside, _), (_, _, then, _) in zip(spans, spans[1:]) if inside and not then
    ]


def _nearest(moments: Sequence[float], moment: float) -> float | None:
    place = bisect_left(moments, moment)
    return min(
        moments[max(0, place - 1) : place + 1], key=lambda one: abs(one - moment), default=None
    )


def _on_grid(spans: Spans, begin: float, steps: int) -> list[tuple[bool, str]]:
    spans, row = _widened(spans), []
    place = 0
    for step in range(steps):
        moment = begin + (step + 0.5) * GRID_S
        while place < len(spans) - 1 and spans[place][1] <= moment:
            place += 1
        row.append(spans[place][2:])
    return row
