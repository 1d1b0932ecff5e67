"""Who did not come to the collective in which the others gave up waiting, by the logs of a job.

A message may name them, stacks may show them elsewhere, their own last call may come before the one
in which the others wait, or they alone may be silent: the best of these counts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainprobe.facts import CollectiveCall, Facts, LogEvent, LogFailure, LogJob, MainThread
from trainprobe.facts.collectives import NO_NUMBER, POINT_TO_POINT, REPORTED, WATCHDOG
from trainprobe.facts.timed_out_calls import FIRST
from trainprobe.model.ranks import unfold_ranks
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.log_stack_hangs import awaits_ranks, away_ranks, rank_threads
from trainprobe.waits.standings import AT_A_GPU

# A timeout of one of these without a number is no watchdog's.
_UNNUMBERED = POINT_TO_POINT | {"barrier", FIRST, ""}
# Echoes that mean that somebody was waited for in vain.
TIMEOUTS = frozenset(
    {
        "collective-timeout",
        "barrier-timeout",
        "store-timeout",
        "rendezvous-timeout",
        "peer-timeout",
        "watchdog-frame",
        "horovod-stall",
        "watchdog-stuck",
        "scheduler-stuck",
        "store-barrier",
        "world-incomplete",
        "missing-ranks",
        "recorder-culprit",
        "desync",
        "desync-rank",
        "unique-id-timeout",
    }
)
# Messages that name the ranks that did not come, the best first.
_NAMING = (
    "desync",
    "missing-ranks",
    "recorder-missing-ranks",
    "barrier-timeout",
    "unique-id-timeout",
)
_MOST_RANKS = 65_536
# By so many calls a rank may be ahead of another of its group: CUDA's queue takes 1024 launches,
# and then the host waits. Numbers further apart are those of other groups.
MOST_AHEAD = 1024


@dataclass(frozen=True)
class Absentees:
    """`sure`: more than their silence shows it. `named`: a message names them. `why` continues a
    sentence; `says` is one of its own.
    """

    ranks: tuple[int, ...]
    why: str
    says: str
    facts: tuple[LogEvent | CollectiveCall | MainThread | LogFailure, ...]
    sure: bool = True
    named: bool = False

    @property
    def by_stack(self) -> bool:
        """Do the stacks themselves show where the ranks were?"""
        return any(isinstance(fact, MainThread) for fact in self.facts)


def given_up(facts: Facts, cell: str) -> tuple[CollectiveCall, ...]:
    """The calls on which a watchdog of the cell's ranks gave up, those with a name first."""
    found = (
        call
        for call in facts.of(CollectiveCall, cell=cell)
        if call.source in (WATCHDOG, REPORTED)
        and not call.finished
        and not (call.number == NO_NUMBER and call.op in _UNNUMBERED)
    )
    return tuple(sorted(found, key=lambda call: not call.op))


def world_of(job: LogJob, failures: Sequence[LogFailure]) -> tuple[int, ...]:
    """Every rank that the logs know of, in order."""
    named = {failure.rank for failure in failures if failure.rank is not None} | set(job.ranks)
    return tuple(sorted(named | set(range(min(job.world_size or 0, _MOST_RANKS)))))


def absentees(facts: Facts, cell: str) -> Absentees | None:
    """The ranks that did not come, by the best evidence of the logs; None where nothing names
    them.
    """
    job = facts.one(LogJob, cell=cell)
    if job is None:
        return None
    failures = facts.of(LogFailure, cell=cell)
    calls, world = given_up(facts, cell), world_of(job, failures)
    ways = (
        _reported(facts, cell),
        _named(facts, cell, len(world)),
        _by_stacks(facts, cell),
        _behind(facts, cell, calls, len(world)),
        _earliest(calls),
        _elsewhere(calls),
        _silent(facts, job, calls, failures, world),
        _holders(facts, cell),
    )
    return next((found for way in ways for found in way), None)


def _reported(facts: Facts, cell: str) -> Iterator[Absentees]:
    """A desync report lists the last call of each rank: these are one call behind."""
    last = [
        call
        for call in facts.of(CollectiveCall, cell=cell)
        if call.source == REPORTED and call.finished
    ]
    lowest = min((call.number for call in last), default=0)
    shown = tuple(call for call in last if call.number == lowest)
    ranks = tuple(sorted({call.rank for call in shown if call.rank is not None}))
    if ranks:
        says = f"{_who(ranks)} had finished collective #{lowest} and did not join #{lowest + 1}"
        yield Absentees(ranks, f"{shown[0].seen_at} says so", says, shown, named=True)


def _named(facts: Facts, cell: str, world_size: int) -> Iterator[Absentees]:
    """A monitored barrier, a desync report or the recorder's analysis names them."""
    # at a monitored barrier rank 0 knows who did not come; the others know only rank 0
    events = sorted(
        facts.of(LogEvent, cell=cell),
        key=lambda event: event.signature == "monitored-barrier-alone",
    )
    for name in _NAMING:
        for event in events:
            captured = event.captured
            speaker = name == "unique-id-timeout"  # there `rank` is the one that waited
            one = "" if speaker else captured.get("rank", "")
            ranks = _ranks_in(captured.get("ranks", "") or one)
            if event.event != name or not ranks:
                continue
            if name == "missing-ranks":
                ranks = _together(events, event, ranks)
            if len(ranks) < world_size or world_size < 2:
                says = f"The log says that {ranks_say(ranks)} did not come: {event.line[:160]}"
                yield Absentees(ranks, f"{event.seen_at} says so", says, (event,), named=True)


def _together(
    events: Sequence[LogEvent], first: LogEvent, ranks: tuple[int, ...]
) -> tuple[int, ...]:
    """All ranks of one list, of which each row names one; a later list begins with one again."""
    place, found = first.place or 0, list(ranks)
    for event in sorted(events, key=lambda one: one.place or 0):
        more = _ranks_in(event.captured.get("ranks", ""))
        if event.signature != first.signature or (event.place or 0) <= place or len(more) != 1:
            continue
        if (event.place or 0) - place > 1 or more[0] in found:
            break
        found, place = [*found, *more], event.place or 0
    return tuple(sorted(found))


def _ranks_in(text: str) -> tuple[int, ...]:
    parts = re.findall(r"\d{1,7}(?:-\d{1,7})?", text[:2000])
    try:
        return unfold_ranks(",".join(parts))[:4096]
    except ValueError:
        return ()


def _by_stacks(facts: Facts, cell: str) -> Iterator[Absentees]:
    """Their stacks stand elsewhere while others wait in a collective."""
    threads = rank_threads(facts, cell)
    ranks = away_ranks(threads)
    if ranks:
        shown = tuple(thread for thread in threads if thread.rank in ranks)[:3]
        why = f"{'its' if len(ranks) == 1 else 'their'} stack stands at {shown[0].where}"
        yield Absentees(ranks, why, f"{_who(ranks)} did not come: {why}", shown)


def _behind(
    facts: Facts, cell: str, calls: Sequence[CollectiveCall], world_size: int
) -> Iterator[Absentees]:
    """The last call that they enqueued comes before the one in which the others wait."""
    hung = {call.number for call in calls if call.number != NO_NUMBER}
    stuck = {call.rank for call in calls}
    if not hung:
        yield from _idle(facts, cell, calls)
        return
    last: dict[int, tuple[int, LogEvent]] = {}
    for event in facts.of(LogEvent, cell=cell):
        rank = event.rank if event.rank is not None else event.number("me")
        enqueued = event.number("enqueued")
        if rank is None or enqueued is None:
            continue
        woken = (  # another rank's signal had it write what it was at
            event.event == "dump-signal"
            and rank not in stuck
            and enqueued == event.number("completed")
            and enqueued + 1 in hung
        )
        if woken or (event.event == "nccl-last-work" and event.rank is not None):
            known = last.get(rank)
            if known is None or enqueued > known[0]:
                last[rank] = (enqueued, event)
    newest = max(hung)
    ranks = tuple(
        sorted(
            rank
            for rank, (enqueued, _) in last.items()
            if enqueued < newest
            and not any(call.rank == rank and call.number == newest for call in calls)
        )
    )
    if ranks and len(ranks) < max(world_size, 2):
        number = last[ranks[0]][0]
        they = "it" if len(ranks) == 1 else "they"
        says = (
            f"{_who(ranks)} had enqueued nothing after #{number} and never came to"
            f" #{newest}, in which the others gave up"
        )
        yield Absentees(
            ranks,
            f"the last that {they} had enqueued is #{number}",
            says,
            tuple(last[rank][1] for rank in ranks),
        )


def _idle(facts: Facts, cell: str, calls: Sequence[CollectiveCall]) -> Iterator[Absentees]:
    """Where the call itself has no number: they had completed all that they had enqueued, and
    others had enqueued more.
    """
    last: dict[int, LogEvent] = {}
    for event in facts.of(LogEvent, cell=cell):
        if event.event == "nccl-last-work" and event.rank is not None:
            last[event.rank] = event
    numbers = {rank: event.number("enqueued") or 0 for rank, event in last.items()}
    newest = max(numbers.values(), default=0)
    ranks = tuple(
        sorted(
            rank
            for rank, event in last.items()
            if numbers[rank] == event.number("completed") and numbers[rank] < newest
        )
    )
    if calls and ranks and len(ranks) < len(last):
        done = numbers[ranks[0]]
        says = (
            f"{_who(ranks)} had completed all that {'it' if len(ranks) == 1 else 'they'} had"
            f" enqueued, up to #{done}; the others had enqueued #{newest}"
        )
        why = f"the last that {'it' if len(ranks) == 1 else 'they'} had enqueued is #{done}"
        yield Absentees(ranks, why, says, tuple(last[rank] for rank in ranks))


def _earliest(calls: Sequence[CollectiveCall]) -> Iterator[Absentees]:
    """Of ranks that gave up at different calls of one group those at the first, where they are
    the fewer.
    """
    by_group: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for call in calls:
        if call.rank is not None and call.number != NO_NUMBER:
            by_group[call.group][call.number].add(call.rank)
    for numbers in by_group.values():
        least, most = numbers[min(numbers)], numbers[max(numbers)]
        ranks = tuple(sorted(least - most))
        if max(numbers) - min(numbers) > MOST_AHEAD:
            continue
        if len(numbers) > 1 and ranks and len(least) <= len(most):
            if len(ranks) < len({call.rank for call in calls}):
                they = "it was" if len(ranks) == 1 else "they were"
                why = f"{they} at an earlier call than the others"
                shown = tuple(call for call in calls if call.rank in ranks)[:3]
                says = f"{_who(ranks)} gave up at an earlier call than the others"
                yield Absentees(ranks, why, says, shown, sure=False)
            return


def _elsewhere(calls: Sequence[CollectiveCall]) -> Iterator[Absentees]:
    """Of ranks that gave up in different operations, where no line numbers the calls (torch before
    2.0), the fewer; of two equal camps those that gave up first.
    """
    ops: dict[int, set[str]] = defaultdict(set)
    for call in sorted(calls, key=lambda one: one.place or 0):
        if call.rank is not None and call.op and call.number == NO_NUMBER:
            ops[call.rank].add(call.op)
    camps: dict[str, list[int]] = defaultdict(list)
    for rank, names in ops.items():
        camps[" and ".join(sorted(names))].append(rank)
    # who has given up in several may have been in the others' call as well
    apart = len(camps) > 1 and all(len(names) == 1 for names in ops.values())
    if apart and all(call.number == NO_NUMBER for call in calls):
        fewest = min(len(camp) for camp in camps.values())
        ranks = tuple(sorted(next(camp for camp in camps.values() if len(camp) == fewest)))
        they = "it was" if len(ranks) == 1 else "they were"
        shown = tuple(call for call in calls if call.rank in ranks)[:3]
        says = f"{_who(ranks)} gave up in another operation than the others"
        why = f"{they} in another operation than the others"
        yield Absentees(ranks, why, says, shown, sure=False)


def _silent(
    facts: Facts,
    job: LogJob,
    calls: Sequence[CollectiveCall],
    failures: Sequence[LogFailure],
    world: Sequence[int],
) -> Iterator[Absentees]:
    """They alone print no timeout, and no stack shows them in a collective. Where lines of other
    processes were left out, nobody is known to be silent.
    """
    if any(event.event == "lines-left-out" for event in facts.of(LogEvent, cell=job.cell)):
        return
    spoke = {fact.rank for fact in (*calls, *failures) if fact.rank is not None}
    stacks = facts.of(MainThread, cell=job.cell)
    # A wait for the GPU may be one for a kernel of its own.
    waiting = {thread.rank for thread in stacks if awaits_ranks(thread) and thread.leaf != AT_A_GPU}
    ranks = tuple(rank for rank in world if rank not in spoke and rank not in waiting)
    if (
        (calls or any(failure.echo_of in TIMEOUTS for failure in failures))
        and spoke
        and ranks
        and job.world_size
        and len(ranks) < len(world) / 2 + 0.5
        and set(job.ranks) >= spoke
    ):
        they = "it says" if len(ranks) == 1 else "they say"
        shown: list[MainThread | CollectiveCall | LogFailure] = [
            *(thread for thread in stacks if thread.rank in ranks),
            *calls,
            *(failure for failure in failures if failure.echo_of in TIMEOUTS),
        ]
        yield Absentees(
            ranks,
            f"{they} nothing of a timeout",
            f"{_who(ranks)} printed no timeout; all others did",
            tuple(shown[:3]),
            sure=False,
        )


def _holders(facts: Facts, cell: str) -> Iterator[Absentees]:
    """The interpreter lock was held: this rank's watchdog could not run."""
    for event in facts.of(LogEvent, cell=cell):
        if event.event == "gil-held" and event.rank is not None:
            why = f"{event.seen_at} says so"
            says = f"{_who((event.rank,))} could not run: {event.line[:160]}"
            yield Absentees((event.rank,), why, says, (event,), sure=False)


def _who(ranks: Sequence[int]) -> str:
    text = ranks_say(ranks)
    return text[:1].upper() + text[1:]
