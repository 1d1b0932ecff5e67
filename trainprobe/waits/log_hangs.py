"""Logs in which ranks only gave up waiting: the suspects at the ends of their waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts import CollectiveCall, Facts, LogFailure, LogJob, Rung
from trainprobe.facts.collectives import LAUNCHED
from trainprobe.waits.absentees import absentees, given_up, world_of
from trainprobe.waits.collective_waits import call_given_up, collective_waits, timed_out
from trainprobe.waits.divergence import call_says, divergence_in, ranks_say
from trainprobe.waits.dump_hangs import saved_groups, saved_standings
from trainprobe.waits.hang import divergence_group
from trainprobe.waits.suspects import PROBE, SuspectGroup


def hang_groups(
    facts: Facts, job: LogJob, failures: Sequence[LogFailure]
) -> tuple[SuspectGroup, ...]:
    """The suspects where ranks only gave up waiting; empty where nobody waited."""
    cell, late = job.cell, timed_out(facts, job.cell)
    printed = [call for call in facts.of(CollectiveCall, cell=cell) if call.source == LAUNCHED]
    seen = sorted({call.rank for call in printed if call.rank is not None})
    parted = divergence_in(facts, cell, seen, hung=True) if printed else None
    if parted is not None:
        rung = Rung((), cell, None, 0, PROBE, "", len(seen), "timed_out")
        return (divergence_group(rung, saved_standings(facts, cell, seen, {}), parted),)
    if not late and not given_up(facts, cell):
        return ()
    world = world_of(job, failures)
    waits = collective_waits(facts, cell)
    missing = absentees(facts, cell)
    heard = sorted({*waits, *(missing.ranks if missing is not None else ())})
    ranks = saved_standings(facts, cell, heard, waits)
    groups = saved_groups(facts, cell, ranks, waits) if waits else ()
    if not groups or any(group.how == "stuck-inside" for group in groups):
        groups = (_without_waiters(facts, cell, sorted(waits), len(world)),)
    return tuple(
        replace(
            group,
            says=group.says[:1].upper() + group.says[1:],
            world_size=max(len(world), 1),
        )
        for group in groups
    )


def _without_waiters(
    facts: Facts, cell: str, waiters: Sequence[int], world_size: int
) -> SuspectGroup:
    """Nobody is known to be missing, or nobody who waits is known by rank."""
    calls, late = given_up(facts, cell), timed_out(facts, cell)
    missing, call = absentees(facts, cell), call_given_up(facts, cell)
    absent = missing.ranks if missing is not None else ()
    seconds = f" after {call.timeout_s:g} s" if call.timeout_s else ""
    first = min(calls, key=lambda one: one.place or 0, default=None)
    if missing is not None:
        says = f"{ranks_say(absent)} did not join {call_says(call)}{seconds}: {missing.why}"
    elif first is None:
        who = ranks_say((late[0].rank,)) if late[0].rank is not None else "a rank"
        says = f"{who} {late[0].says} ({late[0].seen_at}), and nothing failed before"
    else:
        everyone = len(waiters) == world_size > 1
        who = "all ranks" if everyone else ranks_say(waiters) if waiters else "a rank"
        says = (
            f"{who} gave up waiting in {call_says(call)}{seconds} ({first.seen_at}), and nothing"
            " failed before"
        )
    return SuspectGroup(
        cell=cell,
        probe=PROBE,
        ranks=absent,
        how="stuck-inside" if missing is None and calls else "never-joined",
        says=says,
        mode="hang",
        evidence=tuple(dict.fromkeys(id_ for one in (*calls, *late) for id_ in one.evidence))[:16],
    )
