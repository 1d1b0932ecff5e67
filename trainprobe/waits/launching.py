"""A job without ranks whose launcher waits at the rendezvous: the agents of the other nodes
never came.
"""

from __future__ import annotations

from trainprobe.facts import Facts, Job, MainThread
from trainprobe.waits.activity import Watch
from trainprobe.waits.standings import AT_THE_STORE
from trainprobe.waits.suspects import SuspectGroup

AGENTS_MEET_S = 30.0
"""Nodes of one job start within seconds of each other. An agent that asks again and again shows
no sleep: for it, its own age must tell.
"""


def waiting_launcher(facts: Facts, job: Job) -> MainThread | None:
    """The launcher's main thread where it stands at the rendezvous and has not gone on between
    looks.
    """
    found = [
        fact
        for fact in facts.of(MainThread, cell=job.cell)
        if fact.role == "launcher" and fact.leaf == AT_THE_STORE
    ]
    return next((fact for fact in found if fact.looks > 1), None)


def waits_s(watch: Watch, launcher: MainThread) -> float | None:
    """For how long it has waited at least, in seconds; None where neither its sleep nor its age
    is known.
    """
    process = watch.processes.get(launcher.pid)
    if process is None:
        return None
    by_age = process.age_s - AGENTS_MEET_S if process.age_s is not None else 0.0
    return max(process.asleep_s or 0.0, process.looked_s or 0.0, by_age)


def launcher_group(job: Job, launcher: MainThread, probe: str) -> SuspectGroup:
    """Nobody of this host is to blame: the ranks that are missing are not even started."""
    says = (
        f"{job.launcher} (pid {launcher.pid}) waits at the rendezvous for the agents of other"
        " nodes, and has started no rank yet"
    )
    return SuspectGroup(
        cell=job.cell,
        probe=probe,
        ranks=(),
        how="not-visible",
        says=says,
        mode="hang",
        evidence=tuple(dict.fromkeys((*launcher.evidence, *job.evidence))),
        world_size=job.world_size or 1,
        hosts=(job.host,) if job.host else (),
    )
