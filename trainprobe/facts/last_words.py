"""Which printed exceptions of a live job ended somebody: none of a rank that trains on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainprobe.facts.endings import RankEnding
from trainprobe.facts.exceptions import RankException
from trainprobe.facts.jobs import Job
from trainprobe.facts.main_threads import MainThread
from trainprobe.model.facts import Fact
from trainprobe.stacks.places import is_user


def join_last_words(facts: list[Fact]) -> list[Fact]:
    """Mark as `handled` what a live job's ranks printed and survived.

    Of a rank without a process the last words stand, and of one whose interpreter shuts down and
    only waits for its other threads; of the latter also what an `except` of its own printed. A
    traceback that names no rank is that of the only rank that is gone, where that one printed no
    other; of the only one that is not here, which may live on another host, where the others here
    came by the same function of the user's.
    """
    alone = {
        job.cell: (job.absent[0], _outermost(facts, job))
        for job in facts
        if isinstance(job, Job) and job.elsewhere and len(job.absent) == 1
    }
    scripts = {job.cell: os.path.basename(job.script) for job in facts if isinstance(job, Job)}
    leaving = {job.cell: leaving_ranks(facts, job) for job in facts if isinstance(job, Job)}
    gone = {
        job.cell: gone_ranks(facts, job) | leaving[job.cell]
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
        other = _other_program(fact, scripts[fact.cell])
        last = fact.last_words
        if fact.rank is None and (last or fact.ends_output) and not (fact.handled or other):
            silent = [rank for rank in away if (fact.cell, rank) not in spoken]
            if len(silent) == 1 and (last or silent[0] in leaving[fact.cell]):
                return replace(fact, rank=silent[0], role="rank")
            rank, came_by = alone.get(fact.cell, (None, set()))
            if last and any((frame.file, frame.name) in came_by for frame in fact.frames):
                return replace(fact, rank=rank, role="rank")
        last = last or (fact.ends_output and fact.rank in leaving[fact.cell])
        lives = fact.rank not in away
        child = (fact.child or other) if lives else ""
        return replace(fact, child=child, handled=fact.handled or lives or not last)

    return [told(fact) for fact in facts]


def _outermost(facts: Iterable[Fact], job: Job) -> set[tuple[str, str]]:
    """The functions of the user's, by file and name, in which the ranks that live here began."""
    return {
        (own.file, own.name)
        for fact in facts
        if isinstance(fact, MainThread) and fact.cell == job.cell and fact.role == "rank"
        for own in [next(filter(is_user, fact.frames), None)]
        if own is not None
    }


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


def gone_ranks(facts: Sequence[Fact], job: Job) -> set[int]:
    """Ranks of a live job that have ended, or have no process where they should have one. Of those
    that may live on another host, the ones whose last words were read here.
    """
    ended = {
        fact.rank
        for fact in facts
        if isinstance(fact, RankEnding) and fact.cell == job.cell and fact.role == "rank"
    }
    missing = set(job.absent)
    if job.elsewhere:
        missing &= {
            fact.rank
            for fact in facts
            if isinstance(fact, RankException)
            and fact.cell == job.cell
            and fact.source == "output"
            and fact.place is None
            and fact.last_words
            and not fact.handled
            and fact.rank is not None
        }
    return {rank for rank in ended if rank is not None} | missing
