"""What logs tell of collectives that timed out: who waited in which, who never came, where the ranks' calls part, and what one rank was at meanwhile.

A watchdog's line is the last word of a rank that waited. Whom it waited for is told by the numbers in these lines (sequence number, operation, sizes),
by the ranks that printed none, and by a recorder's or a monitored barrier's own analysis.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from trainprobe.causes.scene import Scene
from trainprobe.causes.words import ranks_say
from trainprobe.facts import LogEvent, LogJob

FIRST = "the first collective, for which NCCL is set up"
# Of these two ranks of one group may well pass different sizes, or count on their own.
_OWN_SIZES = re.compile(r"ALLTOALL|SEND|RECV|COALESCED|UNKNOWN|SCATTER$|GATHER$")
_PAIRWISE = re.compile(r"SEND|RECV")
_OPERATIONS = {"barrier-timeout": "BARRIER", "unique-id-timeout": FIRST}
SHARDED = re.compile(r"ALLGATHER_BASE|REDUCE_SCATTER_BASE|ALLGATHER_INTO_TENSOR|REDUCE_SCATTER_TENSOR|ALLGATHER_COALESCED")
MANY = 1000  # elements that no barrier and no flag has
Kind = Literal["operation", "size", "order"]


@dataclass(frozen=True)
class TimedOut:
    """One collective in which one rank gave up. `seq` counts within the group, None in old versions; sizes are elements, times seconds."""

    rank: int | None
    seq: int | None
    op: str
    numel_in: int | None
    numel_out: int | None
    timeout_s: float | None
    fact: LogEvent

    @property
    def at(self) -> float | None:
        return self.fact.at

    @property
    def place(self) -> int:
        return self.fact.place if self.fact.place is not None else -1

    def __str__(self) -> str:
        number = f" #{self.seq}" if self.seq is not None else ""
        sizes = f" of {self.numel_in} element{'' if self.numel_in == 1 else 's'}" if self.numel_in is not None else ""
        return f"{self.op or 'a collective'}{number}{sizes}"


@dataclass(frozen=True)
class Parted:
    """The first sequence number at which ranks were in different calls; the smallest camp first."""

    kind: Kind
    seq: int
    camps: tuple[tuple[int, ...], ...]
    calls: tuple[TimedOut, ...]

    def __str__(self) -> str:
        return ", ".join(
            f"{ranks_say(camp, capital=not number)} in {call}" for number, (camp, call) in enumerate(zip(self.camps[:3], self.calls, strict=False))
        )


@dataclass(frozen=True)
class Missing:
    """Ranks that did not come to the collective in which the others gave up. `sure` where somebody says so, not only their silence."""

    ranks: tuple[int, ...]
    sure: bool
    says: str
    facts: tuple[LogEvent, ...]


class Timeouts:
    """All that the logs of one cell tell of collectives that timed out."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._events: dict[str, list[LogEvent]] = defaultdict(list)
        # A live job's output holds such lines as well; there stacks and journals say it better.
        for event in scene.facts.of(LogEvent, cell=scene.cell) if scene.facts.one(LogJob, cell=scene.cell) is not None else ():
            self._events[event.event].append(event)

    def events(self, *shows: str) -> list[LogEvent]:
        """Lines of the whole cell that show one of these, in their order."""
        return sorted((event for name in shows for event in self._events[name]), key=lambda event: event.place if event.place is not None else -1)

    def rank_of(self, event: LogEvent) -> int | None:
        """Of whom it speaks: by the line's own words, else its speaker."""
        own = _number(event, "rank")
        return own if own is not None else event.rank

    @cached_property
    def calls(self) -> tuple[TimedOut, ...]:
        """Every call that timed out, each once: an exception's text repeats the watchdog's line."""
        found: dict[tuple[object, ...], TimedOut] = {}
        for event in self.events("collective-timeout", "barrier-timeout", "unique-id-timeout"):
            one = _timed_out(event)
            found.setdefault((one.rank, one.seq, one.op, one.numel_in), one)
        return tuple(found.values())

    @cached_property
    def first(self) -> Mapping[int, TimedOut]:
        """The call in which each rank hung: the one with the lowest number, since later ones queue behind it."""
        found: dict[int, TimedOut] = {}
        for call in self.calls:
            if call.rank is not None and (call.rank not in found or (call.seq or 0) < (found[call.rank].seq or 0)):
                found[call.rank] = call
        return found

    @cached_property
    def timeout_s(self) -> float | None:
        """The shortest limit that ran out, seconds."""
        return min((call.timeout_s for call in self.calls if call.timeout_s), default=None)

    @cached_property
    def world(self) -> int:
        """How many ranks there are, 0 where only those that timed out are known."""
        told = self.scene.group.world_size
        return told if told > max((*self.first, 0)) and told > 1 else 0

    @cached_property
    def together(self) -> bool:
        """Did every rank of the world give up in one and the same call?"""
        keys = {(call.seq, call.op, call.numel_in) for call in self.first.values()}
        return self.world > 1 and len(self.first) == self.world and len(keys) == 1

    @cached_property
    def parted(self) -> Parted | None:
        by_seq: dict[int, dict[int, TimedOut]] = defaultdict(dict)
        for call in self.calls:
            if call.rank is not None and call.seq is not None and not _PAIRWISE.search(call.op):
                by_seq[call.seq].setdefault(call.rank, call)
        for seq in sorted(by_seq):
            found = self._parted_at(seq, by_seq)
            if found is not None:
                return found
        return None

    def _parted_at(self, seq: int, by_seq: Mapping[int, Mapping[int, TimedOut]]) -> Parted | None:
        ranks = by_seq[seq]
        groups = {self._groups.get((rank, seq)) for rank in ranks} - {None}
        camps: dict[tuple[str, int | None, int | None], list[int]] = defaultdict(list)
        for rank, call in ranks.items():
            own = _OWN_SIZES.search(call.op) is not None
            camps[call.op, None if own else call.numel_in, None if own else call.numel_out].append(rank)
        if len(camps) < 2 or len(groups) > 1:
            return None
        sides = sorted((sorted(side) for side in camps.values()), key=lambda side: (len(side), side))
        sizes = [key[1] or 0 for key in camps]
        scalar = min(sizes) <= 1 and max(sizes) >= MANY  # a barrier or one number meets gradients: not one call with other sizes
        kind: Kind = "operation" if scalar or len({key[0] for key in camps}) > 1 else "size"
        if _crossed([{**by_seq.get(seq, {})}, {**by_seq.get(seq + 1, {})}], sides[0][0], sides[-1][0]):
            kind = "order"
        return Parted(kind, seq, tuple(tuple(side) for side in sides), tuple(ranks[side[0]] for side in sides))

    @cached_property
    def _groups(self) -> Mapping[tuple[int, int], str]:
        """(rank, sequence number) → the group's number, where the line behind the watchdog's names it."""
        found: dict[tuple[int, int], str] = {}
        for event in self.events("nccl-last-work"):
            rank, seq = event.rank if event.rank is not None else _number(event, "rank"), _number(event, "seq")
            if rank is not None and seq is not None and "group" in event.captured:
                found[rank, seq] = event.captured["group"]
        return found

    @cached_property
    def missing(self) -> Missing | None:
        """Who never came, by the best that tells it."""
        return next(iter((*self._told(), *self._behind(), *self._silent())), None)

    def _told(self) -> Iterator[Missing]:
        for show in ("desync", "desync-rank", "missing-ranks", "barrier-timeout", "unique-id-timeout"):
            for event in self.events(show):
                if show == "desync-rank" and "missed" not in event.captured:
                    continue
                ranks = _ranks(event.captured.get("ranks", ""))
                if ranks and not (self.world and len(ranks) >= self.world):
                    yield Missing(
                        ranks, sure=True, says=f"The log says that {ranks_say(ranks, capital=False)} did not come: {event.line[:160]}", facts=(event,)
                    )

    def _behind(self) -> Iterator[Missing]:
        """A rank that another's dump signal woke says how far it was: it had enqueued nothing beyond what was done."""
        hung = {call.seq for call in self.first.values() if call.seq is not None}
        found: dict[int, LogEvent] = {}
        for event in self.events("dump-signal"):
            rank = event.rank if event.rank is not None else _number(event, "me")
            enqueued, completed = _number(event, "enqueued"), _number(event, "completed")
            if rank is not None and rank not in self.first and enqueued is not None and enqueued == completed and enqueued + 1 in hung:
                found.setdefault(rank, event)
        if found:
            ranks = tuple(sorted(found))
            last = _number(next(iter(found.values())), "enqueued")
            says = f"{ranks_say(ranks)} had done all up to #{last} and never came to #{(last or 0) + 1}, in which the others gave up"
            yield Missing(ranks, sure=True, says=says, facts=tuple(found.values()))

    def _silent(self) -> Iterator[Missing]:
        if self.world and self.first and self.world > len(self.first) >= self.world / 2:
            ranks = tuple(rank for rank in range(self.world) if rank not in self.first)
            shown = tuple(call.fact for call in list(self.first.values())[:3])
            yield Missing(ranks, sure=False, says=f"{ranks_say(ranks)} printed no timeout; all others did", facts=shown)

    @cached_property
    def task(self) -> LogEvent | None:
        """The last long task (saving, validating, preparing data) that somebody began before the first timeout and did not end."""
        begins = min((call.place for call in self.calls), default=None)
        if begins is None:
            return None
        seen = [event for event in self.events("task-began", "load-began") if event.place is None or event.place < begins or event.rank not in self.first]
        for event in reversed(seen):
            ended = [end for end in self.events("task-ended") if (end.place or 0) > (event.place or 0) and end.rank == event.rank and (end.place or 0) < begins]
            return None if ended else event
        return None


def _timed_out(event: LogEvent) -> TimedOut:
    ms = _number(event, "timeout_ms") or _number(event, "ms")
    rank = event.rank if event.rank is not None else _number(event, "rank")
    op = event.captured.get("op", "") or _OPERATIONS.get(event.event) or event.captured.get("what", "")
    return TimedOut(rank, _number(event, "seq"), op, _number(event, "numel_in"), _number(event, "numel_out"), ms / 1000 if ms else None, event)


def _crossed(calls: list[Mapping[int, TimedOut]], one: int, other: int) -> bool:
    """Does each of the two ranks make next the call that the other makes here?"""
    here, then = calls
    if not all(rank in found for found in calls for rank in (one, other)):
        return False
    return _key(here[one]) == _key(then[other]) and _key(here[other]) == _key(then[one])


def _key(call: TimedOut) -> tuple[object, ...]:
    return (call.op, call.numel_in, call.numel_out)


def _number(event: LogEvent, name: str) -> int | None:
    text = event.captured.get(name, "").strip()
    return int(text) if text.lstrip("-").isdigit() and len(text) < 19 else None


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(part) for part in _parts(text) if part.isdigit() and len(part) < 8}))


def _parts(text: str) -> Iterable[str]:
    return (part.strip() for part in text.split(","))
