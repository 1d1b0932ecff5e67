"""Which printed exceptions of a live job ended somebody: none of a rank that trains on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from trainprobe.facts.endings import RankEnding
from trainprobe.facts.exceptions import RankException
from trainprobe.facts.jobs import Job
from trainprobe.facts.main_threads import MainThread
from trainprobe.model.facts import Fact


def join_last_words(facts: list[Fact]) -> list[Fact]:
    """Mark as `handled` what a live job's ranks printed and survived.

    Of a rank without a process the last words stand, and of one whose interpreter shuts down and
    only waits for its other threads. A traceback that names no rank is that of the only rank that
    is gone, where that one printed no other.
    """
    scripts = {job.cell: os.path.basename(job.script) for job in facts if isinstance(job, Job)}
    gone = {
        job.cell: gone_ranks(facts, job) | leaving_ranks(facts, job)
        for job in facts
        if isinstance(job, Job)
    }
    if not gone:
        return facts
    spoken = {
        (fact.cell, fact.rank)
        for fact in facts
        if isinstance(fact, RankException) and fact.rank is not None and not fact.handled
    }

    def told(fact: Fact) -> Fact:
        if not isinstance(fact, RankException) or fact.cell not in gone:
            return fact
        if fact.source != "output" or fact.place is not None:  # that of a log has a place
            return fact
        away = gone[fact.cell]
        silent = [rank for rank in away if (fact.cell, rank) not in spoken]
        other = _other_program(fact, scripts[fact.cell])
        if (
            fact.rank is None
            and fact.last_words
            and not (fact.handled or other)
            and len(silent) == 1
        ):
            return replace(fact, rank=silent[0], role="rank")
        lives = fact.rank not in away
        child = (fact.child or other) if lives else ""
        return replace(fact, child=child, handled=fact.handled or lives or not fact.last_words)

    return [told(fact) for fact in facts]


def _other_program(fact: RankException, script: str) -> str:
    """The program below a rank that this traceback is of: one that begins in another script."""
    first = fact.frames[0] if fact.frames else None
    if first is None or first.name != "<module>" or not script.endswith(".py"):
        return ""
    return first.base if first.base not in (script, "") else ""


def leaving_ranks(facts: Iterable[Fact], job: Job) -> set[int]:
    """Ranks whose interpreter shuts down."""
    return {
        fact.rank
        for fact in facts
        if isinstance(fact, MainThread)
        and fact.cell == job.cell
        and fact.role == "rank"
        and fact.in_atexit
        and fact.rank is not None
    }


def gone_ranks(facts: Iterable[Fact], job: Job) -> set[int]:
    """Ranks of a live job that have ended, or have no process where they should have one."""
    ended = {
        fact.rank
        for fact in facts
        if isinstance(fact, RankEnding) and fact.cell == job.cell and fact.role == "rank"
    }
    missing = set() if job.elsewhere else set(job.absent)
    return {rank for rank in ended if rank is not None} | missing
