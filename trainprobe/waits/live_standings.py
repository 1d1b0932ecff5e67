"""Where each rank of a live job stands, put together from the job's own record, /proc and the
stacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from trainprobe.facts import Facts, Job, JobRank, MainThread, ProcessState
from trainprobe.facts.last_words import gone_ranks
from trainprobe.model.diagnosis import RankState
from trainprobe.waits.activity import Activity, Watch
from trainprobe.waits.collective_waits import collective_waits
from trainprobe.waits.recorder_waits import numbered
from trainprobe.waits.standings import AT_A_GPU, AT_A_KERNEL, Standing, behind_main

F = TypeVar("F", ProcessState, MainThread)
_STATES: dict[str, RankState] = {
    "works": "computing",
    "fresh": "computing",
    "unclear": "waiting",
    "still": "waiting",
    "polls": "waiting",
    "spins": "spinning",
    "stopped": "stopped",
    "blocked": "blocked",
    "ended": "exited",
    "unseen": "unseen",
}


def live_world(facts: Facts, job: Job) -> tuple[int, ...]:
    """The ranks to judge: those with a process here, and those of the world that are missing
    unless they may live on another host and did not end here.
    """
    here = {
        fact.rank
        for kind in (JobRank, MainThread, ProcessState)
        for fact in facts.of(kind, cell=job.cell)
        if fact.rank is not None and _of_rank(fact)
    }
    missing = set(job.absent)
    if job.elsewhere:
        missing &= gone_ranks(facts.all, job)
    absent = {rank for rank in missing if 0 <= rank < (job.world_size or 0)}
    if not here and not absent and job.world_size == 1:
        here = {0}
    return tuple(sorted(here | absent))


def live_standings(facts: Facts, job: Job, watch: Watch) -> tuple[Standing, ...]:
    """One standing per rank of `live_world`, in order."""
    waits = collective_waits(facts, job.cell)
    awaited = {rank for wait in waits.values() if wait.sure for rank in wait.awaited} - set(waits)
    ranks = [_standing(facts, job, watch, rank) for rank in live_world(facts, job)]
    # Who waits for the GPU and has not launched the others' call waits for a kernel of its own; so
    # does everybody where no collective runs on a GPU.
    none_there = job.backend == "gloo" or job.world_size == 1
    ranks = [
        replace(one, leaf=AT_A_KERNEL)
        if one.leaf == AT_A_GPU and (none_there or one.rank in awaited)
        else one
        for one in ranks
    ]
    return numbered(_one_age(ranks, watch), waits)


def _one_age(ranks: Sequence[Standing], watch: Watch) -> list[Standing]:
    """Leave out the age of a nap where others have waited for longer: who wakes and sleeps again
    waits on, and no nap tells since when.
    """
    naps = {one.rank for one in ranks if one.pid is not None and watch.activity(one.pid).wakes}
    longest_s = max((one.since_s or 0.0 for one in ranks if one.rank not in naps), default=0.0)
    return [
        replace(one, since_s=None) if one.rank in naps and (one.since_s or 0.0) < longest_s else one
        for one in ranks
    ]


def _of_rank(fact: object) -> bool:
    return getattr(fact, "role", "rank") == "rank"


def _standing(facts: Facts, job: Job, watch: Watch, rank: int) -> Standing:
    member = facts.one(JobRank, cell=job.cell, rank=rank)
    process = _living(watch, facts.of(ProcessState, cell=job.cell, rank=rank))
    main = _living(watch, facts.of(MainThread, cell=job.cell, rank=rank))
    if (
        member is not None
        and process is not None
        and member.pid in watch.endings
        and process.pid not in watch.endings
    ):
        member = replace(member, pid=process.pid)  # started again while we looked
    pid = next(
        (
            one
            for one in (
                member.pid if member else None,
                process.pid if process else None,
                main.pid if main else None,
            )
            if one
        ),
        None,
    )
    activity = watch.activity(pid) if pid is not None else Activity("unseen")
    state = _STATES[activity.kind]
    if (
        member is not None
        and state == "unseen"
        and process is not None
        and process.state in ("S", "I")
    ):
        state = "waiting"  # its stack was refused, but /proc shows that it sleeps
    leaf, op, where = (main.leaf, main.op, main.where) if main is not None else ("", "", "")
    behind = behind_main(watch.threads.get(pid or 0, ()), leaf) if not activity.goes_on else None
    if behind is not None:
        _, place, line = behind
        leaf, op, where = place.leaf, place.op, line.where
    ending = watch.endings.get(pid) if pid is not None else None
    shown = [fact.evidence for fact in (member, process, main, ending) if fact is not None]
    return Standing(
        rank=rank,
        state=state,
        host=(member.host or job.host) if member is not None else _absent_host(job),
        pid=pid,
        where=where,
        leaf=leaf,
        op=op,
        moved=main.moved if main is not None else None,
        ending=ending,
        since_s=activity.age_s if state in ("waiting", "blocked", "stopped") else None,
        thread=main,
        process=process,
        evidence=tuple(
            dict.fromkeys(
                id_ for ids in (*shown, job.evidence if pid is None else ()) for id_ in ids
            )
        ),
        goes_on=activity.goes_on,
    )


def _living(watch: Watch, facts: Sequence[F]) -> F | None:
    """The rank's fact; of a rank that ended and was started again, that of the process that
    lives.
    """
    of_rank = sorted(
        (fact for fact in facts if fact.role == "rank"), key=lambda fact: fact.pid in watch.endings
    )
    return of_rank[0] if of_rank else None


def _absent_host(job: Job) -> str:
    """Where a rank without a process must be: on the only node that gave no answer."""
    if len(job.silent) == 1:
        return job.silent[0][0]
    return "" if job.silent or job.hosts else job.host
