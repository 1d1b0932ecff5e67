"""Until when a hung job can be looked at, and what ending it costs. What is not known is said to
be unknown.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainprobe.facts import (
    Checkpoint,
    CollectiveCall,
    Deadline,
    Facts,
    HeldLock,
    Job,
    JobRank,
    LockWait,
    ProcessState,
    Thread,
)
from trainprobe.model.diagnosis import Expiry, Killing
from trainprobe.waits.dump_hangs import only_dumps
from trainprobe.waits.situation import Situation
from trainprobe.waits.standings import IN_COLLECTIVE

UNKNOWN = "unknown"
# a job of less than ten minutes has not much to lose, and its first checkpoint may not be due
YOUNG_S = 600.0


def looked_at(facts: Facts, cell: str) -> float | None:
    """When the last stack was taken, Unix time in seconds: the present, as far as the case knows
    it.
    """
    return max((thread.at for thread in facts.of(Thread, cell=cell) if thread.at), default=None)


def expiries(facts: Facts, view: Situation) -> tuple[Expiry, ...]:
    """The group's timeout and the scheduler's limit, in this order; each is there even where
    nothing is known of it.
    """
    return (_group_timeout(facts, view), _scheduler(facts, looked_at(facts, view.cell)))


def killing(facts: Facts, view: Situation) -> Killing:
    """The newest checkpoint that the job has written, and its age: what is older than the job is
    another one's.
    """
    job = facts.one(Job, cell=view.cell)
    began = job.began if job is not None else None
    found = [
        fact
        for fact in facts.of(Checkpoint)
        if fact.modified_at is not None and (began is None or fact.modified_at >= began)
    ]
    now = looked_at(facts, view.cell)
    if not found:
        young = now is not None and began is not None and now - began < YOUNG_S
        none = "none of this run was found" if facts.of(Checkpoint) else "none was found"
        says = none if young else f"{none}: all work since the start may be lost"
        return Killing(
            None, None, says if facts.looked("deadlines") else "unknown: none was looked for"
        )
    newest = max(found, key=lambda fact: fact.modified_at or 0.0)
    age_s = (
        None if now is None or newest.modified_at is None else max(0.0, now - newest.modified_at)
    )
    return Killing(
        newest.path,
        age_s,
        (
            "the work since that checkpoint would be lost"
            if age_s is not None
            else "its age is unknown"
        ),
    )


def lock_holder(facts: Facts, view: Situation, pids: Iterable[int]) -> int | None:
    """Of processes that a cause names one that holds a lock and is no rank of the job, nor a worker
    of one: its end lets the job go on.
    """
    ranks = {one.pid for one in facts.of(JobRank, cell=view.cell)}
    ranks |= {one.pid for one in facts.of(ProcessState, cell=view.cell) if one.rank is not None}
    holders = {lock.holder_pid for lock in facts.of(LockWait, cell=view.cell)}
    holders |= {lock.pid for lock in facts.of(HeldLock, cell=view.cell)}
    return next((pid for pid in pids if pid in holders - ranks), None)


def advice(
    view: Situation, ends: tuple[Expiry, ...], cost: Killing, holder: int | None = None
) -> str:
    """What to do, in a sentence or two: wait until when, end the `holder` of a lock, or save the
    case and kill the job.
    """
    soonest = min(
        (end for end in ends if end.left_s is not None),
        key=lambda end: end.left_s or 0.0,
        default=None,
    )
    until = (
        f" ({soonest.what} ends it in {_span(soonest.left_s)})"
        if soonest is not None and soonest.left_s is not None
        else ""
    )
    if view.verdict != "hung":
        busy = [standing for standing in view.ranks if standing.goes_on]
        waiting = [standing for standing in view.ranks if standing.rank in view.waits_for]
        if not (len(busy) == 1 and waiting and view.verdict == "healthy"):
            return ""
        return (
            f"Wait until rank {busy[0].rank} is done{until}. Whether its work ends, its code"
            " decides: attach again if it is still there much later."
        )
    stopped = [standing for standing in view.ranks if standing.state == "stopped"]
    if stopped:
        return (
            f"Wait until rank {stopped[0].rank} has been continued: nothing is lost by that{until}."
        )
    lost = (
        f"about {_span(cost.age_s)} of work is lost with it"
        if cost.age_s is not None
        else "what is lost with it is unknown"
    )
    if holder is not None:
        return (
            f"It gets on when pid {holder}, which is none of its ranks, frees the lock or"
            f" ends{until}: look at that process, and end it if it is left over. Else save the"
            f" case, then kill the job; {lost}."
        )
    return f"It does not get on by itself{until}: save the case, then kill the job; {lost}."


def _group_timeout(facts: Facts, view: Situation) -> Expiry:
    job = facts.one(Job, cell=view.cell)
    if job is not None and not view.ranks and not only_dumps(job):
        return Expiry("the group's timeout", says="no rank has been started, so there is no group")
    limits = _limits(facts, view)
    waited = [
        one.since_s for one in view.ranks if one.since_s is not None and one.leaf in IN_COLLECTIVE
    ]
    alone = job is not None and len(view.ranks) == 1 and (job.world_size or 1) == 1
    if alone and not waited:
        return Expiry("the group's timeout", says="one process alone waits in no group")
    if not limits:
        return Expiry("the group's timeout", says=UNKNOWN)
    shortest = min(limits, key=lambda fact: fact.seconds or 0.0)
    length = shortest.seconds or 0.0
    if not waited:
        return Expiry(
            "the group's timeout",
            None,
            None,
            shortest.source,
            f"{_span(length)} long; how long anybody has waited is unknown",
        )
    now = looked_at(facts, view.cell)
    left_s = max(0.0, length - max(waited))
    return Expiry(
        "the group's timeout",
        left_s,
        None if now is None else now + left_s,
        shortest.source,
        f"{_span(left_s)} left of {_span(length)}",
    )


def _limits(facts: Facts, view: Situation) -> list[Deadline]:
    """The timeouts of the calls that wait, where the recorder tells of them; else what was found
    of the groups' own.
    """
    waiting = [
        call for call in facts.of(CollectiveCall, cell=view.cell) if call.pending and call.timeout_s
    ]
    if waiting:
        shortest = min(waiting, key=lambda call: call.timeout_s or 0.0)
        return [
            Deadline(
                shortest.evidence,
                kind="group",
                rank=shortest.rank,
                seconds=shortest.timeout_s,
                source="the flight recorder",
            )
        ]
    return [fact for fact in facts.of(Deadline) if fact.kind == "group" and fact.seconds]


def _scheduler(facts: Facts, now: float | None) -> Expiry:
    limits = [
        fact for fact in facts.of(Deadline) if fact.kind == "scheduler" and fact.ends_at is not None
    ]
    if not limits or limits[0].ends_at is None:
        return Expiry("the scheduler's limit", says=UNKNOWN)
    ends_at = limits[0].ends_at
    left_s = None if now is None else max(0.0, ends_at - now)
    return Expiry(
        "the scheduler's limit", left_s, ends_at, limits[0].source, f"{_span(left_s)} left"
    )


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "an unknown time"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return (
        f"{whole // 60} min {whole % 60:02d} s"
        if whole < 3600
        else f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    )
