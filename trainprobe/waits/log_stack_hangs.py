"""Logs in which stacks tell where the ranks stood: faulthandler's timer ran out, or somebody
pressed Ctrl-C on a job that did not go on.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.facts import Facts, LogFailure, LogJob, LogStack, MainThread
from trainprobe.model.diagnosis import Link
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.standings import AT_THE_STORE, IN_COLLECTIVE, OWN_WAITS
from trainprobe.waits.suspects import PROBE, SuspectGroup

PRESSED = "KeyboardInterrupt"


def pressed(failures: Sequence[LogFailure]) -> bool:
    """Is Ctrl-C all that ended it?"""
    return bool(failures) and all(failure.kind.startswith(PRESSED) for failure in failures)


def awaits_ranks(thread: MainThread) -> bool:
    """Does it stand where all other ranks are waited for?"""
    return thread.leaf in IN_COLLECTIVE or thread.leaf == AT_THE_STORE or thread.in_backward


def rank_threads(facts: Facts, cell: str) -> tuple[MainThread, ...]:
    """Where the main threads of the ranks stood by the dumps in the log, one of each; those of
    which nobody knows whose they are too.
    """
    if not facts.of(LogStack, cell=cell):
        return ()
    found: dict[tuple[int | None, int], MainThread] = {}
    for thread in facts.of(MainThread, cell=cell):
        if thread.role == "rank" and thread.source != "faulthandler":
            found.setdefault((thread.rank, thread.pid if thread.rank is None else 0), thread)
    return tuple(found.values())


def away_ranks(threads: Sequence[MainThread]) -> tuple[int, ...]:
    """The ranks that stood elsewhere while others waited for them."""
    away = [thread for thread in threads if thread.rank is not None and not awaits_ranks(thread)]
    if len(away) == len(threads):
        return ()
    return tuple(sorted(thread.rank for thread in away if thread.rank is not None))


def still_group(facts: Facts, job: LogJob, failures: Sequence[LogFailure]) -> SuspectGroup | None:
    """The suspects of a job whose stacks are all that tells of its end; None where there are
    none, or where Ctrl-C met a job at work.
    """
    threads = rank_threads(facts, job.cell)
    if not threads or (
        pressed(failures)
        and not any(awaits_ranks(thread) or thread.leaf in OWN_WAITS for thread in threads)
    ):
        return None
    absent = away_ranks(threads)
    waiting = tuple(
        sorted(
            thread.rank for thread in threads if thread.rank is not None and awaits_ranks(thread)
        )
    )
    alone = [thread for thread in threads if not awaits_ranks(thread)]
    shown = (
        next((thread for thread in alone if thread.rank in absent), None)
        or (alone or list(threads))[0]
    )
    where = f"at {shown.where}" if shown.where else "still"
    told = next(
        (stack.seen_at for stack in facts.of(LogStack, cell=job.cell) if stack.rank == shown.rank),
        "",
    )
    others = (
        f", while {ranks_say(waiting).lower()} waited for {'it' if len(absent) == 1 else 'them'}"
        if absent and waiting
        else ""
    )
    who = (
        ranks_say(absent)
        if absent
        else (
            ranks_say((shown.rank,))
            if shown.rank is not None and len(threads) == 1
            else "The ranks"
            if len(threads) > 1
            else "The program"
        )
    )
    why = ", until somebody pressed Ctrl-C" if pressed(failures) else ""
    ids = tuple(dict.fromkeys(id_ for thread in threads for id_ in thread.evidence))
    ranks = absent or (
        (shown.rank,) if shown.rank is not None and len(threads) == 1 and alone else ()
    )
    return SuspectGroup(
        cell=job.cell,
        probe=PROBE,
        ranks=ranks,
        how="never-joined" if absent else "stuck-inside",
        mode="hang",
        says=f"{who} stood {where}{f' ({told})' if told else ''}{others}{why}, and nothing failed before",  # noqa: E501
        victims=waiting if absent else (),
        chain=(Link(ranks_say(waiting), ranks_say(absent), "waited for", ids),)
        if absent and waiting
        else (),
        evidence=ids,
        world_size=max(job.world_size or 1, len(threads)),
        camps=(absent, waiting) if absent and waiting else (),
    )
