"""A job without ranks whose launcher waits at the rendezvous: the agents of the other nodes
never came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trainprobe.facts import Connection, Facts, Job, MainThread
from trainprobe.model.pids import HostPid
from trainprobe.model.ranks import and_list
from trainprobe.waits.activity import Watch
from trainprobe.waits.meeting import end_point, is_loopback
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


class Away(NamedTuple):
    """Whose agents do not come to the others, and what shows it."""

    hosts: tuple[str, ...]
    says: str
    evidence: tuple[str, ...]


def agents_away(facts: Facts, job: Job, launchers: Sequence[MainThread]) -> Away | None:
    """The hosts whose agents wait alone: all where each meets nobody but itself, those without a
    connection while others have one, those where nothing of the job runs. None where nothing of
    this was seen.
    """
    agents = {
        each.pid: each.pid.host if isinstance(each.pid, HostPid) else job.host for each in launchers
    }
    hosts = tuple(dict.fromkeys(agents.values()))
    address, port = end_point(job)
    if len(hosts) > 1 and is_loopback(address):
        says = (
            f"each agent was told to meet the others at {address}{f':{port}' if port else ''},"
            " which is its own host"
        )
        return Away(hosts, says, job.evidence)
    sockets = [one for one in facts.of(Connection, cell=job.cell) if one.state == "ESTAB"]
    refused = {one.subject.host for one in facts.refused("sockets", cell=job.cell)}
    met = {one.pid for one in sockets}
    apart = tuple(
        dict.fromkeys(
            host for pid, host in agents.items() if pid not in met and host not in refused
        )
    )
    if met and apart:
        says = (
            f"the agent on {and_list(apart)} has no connection to the end point"
            f"{f', {address}:{port}' if address and port else ''}, and others have one"
        )
        seen = {id_ for each in launchers if agents[each.pid] in apart for id_ in each.evidence}
        return Away(apart, says, tuple(sorted(seen)))
    empty = [
        one for one in facts.refused("node.look", cell=job.cell) if one.outcome == "unavailable"
    ]
    if empty and len(hosts) < (job.nnodes or 1):
        names = tuple(dict.fromkeys(one.subject.host for one in empty))
        says = f"nothing of the job runs on {and_list(names)}"
        return Away(names, says, tuple(one.evidence for one in empty if one.evidence))
    return None


def launcher_group(
    facts: Facts, job: Job, launchers: Sequence[MainThread], probe: str
) -> SuspectGroup:
    """The ranks that are missing are not even started: at most their hosts are known."""
    away = agents_away(facts, job, launchers)
    pids = sorted({launcher.pid for launcher in launchers})
    seen = (each for launcher in launchers for each in launcher.evidence)
    says = (
        f"{job.launcher} (pid {pids[0]}) waits at the rendezvous for the agents of other"
        " nodes, and has started no rank yet"
        if len(pids) == 1
        else f"{len(pids)} agents of {job.launcher} (pids {', '.join(map(str, pids))}) wait at the"
        " rendezvous, and have started no rank yet"
    )
    if away is not None:
        says += f"; {away.says}"
    return SuspectGroup(
        cell=job.cell,
        probe=probe,
        ranks=(),
        how="not-visible",
        says=says,
        mode="hang",
        evidence=tuple(dict.fromkeys((*seen, *job.evidence))),
        world_size=job.world_size or 1,
        hosts=away.hosts if away is not None else (job.host,) if job.host else (),
    )
