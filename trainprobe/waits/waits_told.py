"""Logs that end with a wait: for a lock, for ranks that did not come, in words of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts import Facts, LogEvent, LogJob
from trainprobe.facts.log_waits import WAIT_TOLD
from trainprobe.logtext.quotes import quoted
from trainprobe.logtext.retries import tries_again
from trainprobe.model.waits import SuspectHow
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.log_suspects import ids_of, log_group
from trainprobe.waits.situation import Situation
from trainprobe.waits.suspects import SuspectGroup

# Lines in which a process says that it waits, and for what.
WAITS = frozenset(
    {
        "lock-waiting",
        "lock-asked",
        "world-waits",
        "rank-joining",
        "workers-silent",
        "workers-unplaced",
    }
)
MOST_RANKS = 65_536
AGAIN = 3  # such lines, of which one comes a minute: workers that compile are silent as well


def still_waiting(facts: Facts, job: LogJob) -> SuspectGroup | None:
    """The log ends with a process that says what it waits for (a lock, or ranks that did not
    come), or that tries again and again.
    """
    events = facts.of(LogEvent, cell=job.cell)
    got = {event.captured.get("id") for event in events if event.event == "lock-got"}
    waits = [
        event
        for event in events
        if (event.event in WAITS or (event.count >= AGAIN and tries_again(event.line)))
        and not (event.event == "lock-asked" and event.captured.get("id") in got)
        and not (event.event == "world-waits" and _all_came(event))
        and not (event.event == "rank-joining" and _all_joined(events))
        and not (event.event == "workers-silent" and event.count < AGAIN)
    ]
    last = max(waits, key=lambda event: event.place or 0, default=None)
    # of alike lines an event keeps the first one's place
    alike = sum(event.count - 1 for event in waits)
    if last is None or not job.ends or job.last_place - (last.place or 0) > 1 + alike:
        return None
    what = "a wait" if last.event in WAITS else "tries in vain"
    says = f"The log ends with {what} ({last.seen_at}): {quoted(last.line)}"
    absent = ranks_not_come(facts, job.cell)
    if absent:
        says = f"{ranks_say(absent)} did not come to the store's barrier ({last.seen_at})"
    how: SuspectHow = "not-visible" if absent else "stuck-inside"
    group = log_group(job, how, says, "hang", ids_of(waits)[:8], absent)
    return replace(group, waits=True, world_size=max(group.world_size, _world(waits)))


def ranks_not_come(facts: Facts, cell: str) -> tuple[int, ...]:
    """Who lacks at the store's barrier, where most ranks wait and it has counted no others. The
    first to come prove nothing.
    """
    waits = [event for event in facts.of(LogEvent, cell=cell) if event.event == "world-waits"]
    came = {rank for event in waits if (rank := event.number("waits")) is not None}
    counted = max((event.number("joined") or 0 for event in waits), default=0)
    world = _world(waits)
    if counted != len(came) or not counted < world <= min(2 * counted - 1, MOST_RANKS):
        return ()
    return tuple(rank for rank in range(world) if rank not in came)


def _world(waits: Sequence[LogEvent]) -> int:
    return max((event.number("world_size") or 0 for event in waits), default=0)


def told_wait(facts: Facts, job: LogJob, found: Situation) -> SuspectGroup | None:
    """The log ends with a wait in words that nothing else knows, in the phase that was found."""
    told = [event for event in facts.of(LogEvent, cell=job.cell) if event.event == WAIT_TOLD]
    if not told or not job.ends:
        return None
    last = told[-1]
    who = "Whoever watched it says" if last.captured.get("watched") else "The log ends with a wait"
    says = f"{who} ({last.seen_at}): {quoted(last.line).rstrip(':')}"
    phase = found.groups[0].phase if found.groups else ""
    group = log_group(job, "stuck-inside", says, "hang", ids_of(told)[:8])
    return replace(group, waits=True, phase=phase)


def _all_came(event: LogEvent) -> bool:
    world, joined = event.number("world_size"), event.number("joined")
    return world is None or world == joined


def _all_joined(events: Sequence[LogEvent]) -> bool:
    joining = [event for event in events if event.event == "rank-joining"]
    world = max((event.number("world") or 0 for event in joining), default=0)
    return len({event.number("rank") for event in joining}) >= world
