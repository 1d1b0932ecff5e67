"""A job without ranks whose launcher waits at the rendezvous: the agents of the other nodes
never came.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.facts import Facts, Job, MainThread
from trainprobe.waits.activity import Watch
from trainprobe.waits.standings import AT_THE_STORE
from trainprobe.waits.suspects import SuspectGroup

AGENTS_MEET_S = 30.0
"""Nodes of one job start within seconds of each other. An agent that asks again and again shows
no sleep: for it, its own age must tell.
"""


def waiting_launchers(facts: Facts, job: Job) -> tuple[MainThread, ...]:
    """The main threads of the launchers that stand at the rendezvous and have not gone on between
    looks.
    """
    return tuple(
        fact
        for fact in facts.of(MainThread, cell=job.cell)
        if fact.role == "launcher" and fact.leaf == AT_THE_STORE and fact.looks > 1
    )


def waits_s(watch: Watch, launchers: Sequence[MainThread]) -> float | None:
    """For how long all of them have waited at least, in seconds: since the last one came. None
    where neither sleep nor age is known of any.
    """
    waited = (_waits_s(watch, launcher) for launcher in launchers)
    return min((each for each in waited if each is not None), default=None)


def _waits_s(watch: Watch, launcher: MainThread) -> float | None:
    process = watch.processes.get(launcher.pid)
    if process is None:
        return None
    by_age = process.age_s - AGENTS_MEET_S if process.age_s is not None else 0.0
    return max(process.asleep_s or 0.0, process.looked_s or 0.0, by_age)


def launcher_group(job: Job, launchers: Sequence[MainThread], probe: str) -> SuspectGroup:
    """Nobody of this host is to blame: the ranks that are missing are not even started."""
    pids = sorted({launcher.pid for launcher in launchers})
    seen = (each for launcher in launchers for each in launcher.evidence)
    says = (
        f"{job.launcher} (pid {pids[0]}) waits at the rendezvous for the agents of other"
        " nodes, and has started no rank yet"
        if len(pids) == 1
        else f"{len(pids)} agents of {job.launcher} (pids {', '.join(map(str, pids))}) wait at the"
        " rendezvous, and have started no rank yet"
    )
    return SuspectGroup(
        cell=job.cell,
        probe=probe,
        ranks=(),
        how="not-visible",
        says=says,
        mode="hang",
        evidence=tuple(dict.fromkeys((*seen, *job.evidence))),
        world_size=job.world_size or 1,
        hosts=(job.host,) if job.host else (),
    )
