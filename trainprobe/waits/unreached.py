"""Ranks that all want to meet and cannot: some were told another place than the rest, or connect
to a host of the job and have no answer. Then nobody's place in the code is to blame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trainprobe.facts import Connection, Facts, Job, Rung
from trainprobe.model.pids import HostPid
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.meeting import ranks_told_apart
from trainprobe.waits.standings import AT_THE_STORE, Standing
from trainprobe.waits.suspects import SuspectGroup


def unreached_group(
    facts: Facts, job: Job, rung: Rung, ranks: Sequence[Standing]
) -> SuspectGroup | None:
    """The ranks that cannot reach the others, where all stand at the rendezvous or in
    collectives; None where anybody is elsewhere, or the network shows nothing.
    """
    if not all(one.in_collective or one.leaf == AT_THE_STORE for one in ranks):
        return None
    hosts = {one.rank: one.host for one in ranks}
    apart = ranks_told_apart(job, hosts)
    if apart is not None and all(one.leaf == AT_THE_STORE for one in ranks):
        says = (
            f"{ranks_say(apart.ranks)} {'has' if len(apart.ranks) == 1 else 'have'} another"
            f" {apart.name} than the rest, {apart.value}, and never met them"
        )
        return _group(rung, ranks, apart.ranks, (), says, job.evidence)
    return _without_answer(facts, rung, ranks)


def _without_answer(facts: Facts, rung: Rung, ranks: Sequence[Standing]) -> SuspectGroup | None:
    by_pid = {one.pid: one for one in ranks if one.pid is not None}
    open_ends = [fact for fact in facts.of(Connection, cell=rung.cell) if fact.kind == "tcp"]
    host_of = hosts_by_address(open_ends)
    vain = [
        fact
        for fact in open_ends
        if fact.state == "SYN_SENT"
        and (one := by_pid.get(fact.pid)) is not None
        and (one.leaf == AT_THE_STORE or _address(fact.remote) in host_of)
        and host_of.get(_address(fact.remote)) != one.host
    ]
    if not vain:
        return None
    waiting = tuple(sorted({by_pid[fact.pid].rank for fact in vain}))
    far = sorted({host_of.get(_address(fact.remote), "") for fact in vain} - {""})
    whom = " and ".join(far) or " and ".join(sorted({fact.remote for fact in vain})[:2])
    says = f"{ranks_say(waiting)} {'gets' if len(waiting) == 1 else 'get'} no answer from {whom}"
    seen = tuple(dict.fromkeys(id_ for fact in vain for id_ in fact.evidence))
    return _group(rung, ranks, waiting, far, says, seen)


def hosts_by_address(connections: Iterable[Connection]) -> dict[str, str]:
    """The hosts of a job by the addresses from which their processes speak."""
    return {
        _address(fact.local): fact.pid.host for fact in connections if isinstance(fact.pid, HostPid)
    }


def _address(end: str) -> str:
    return end.rpartition(":")[0]


def _group(
    rung: Rung,
    ranks: Sequence[Standing],
    suspects: tuple[int, ...],
    far: Sequence[str],
    says: str,
    evidence: tuple[str, ...],
) -> SuspectGroup:
    """`far` are hosts at the other end of their connections, as likely at fault as their own."""
    own = {one.host for one in ranks if one.rank in suspects and one.host}
    return SuspectGroup(
        cell=rung.cell,
        probe=rung.probe,
        ranks=suspects,
        how="never-joined",
        says=says,
        mode="hang",
        victims=tuple(one.rank for one in ranks if one.rank not in suspects),
        evidence=evidence,
        world_size=len(ranks),
        hosts=tuple(sorted(own.union(far))),
    )
