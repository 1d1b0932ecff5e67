"""Calls that NCCL's RAS counted: the ranks of a communicator that have launched one more collective
than others wait in it.

Equal counts say nothing, and RAS counts no send and no receive. Its text names only the ranks that
differ, so communicators are read from JSON alone (NCCL 2.28.7 on).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.collect.collectors.ras import RasCommunicator, RasRank
from trainprobe.facts.collectives import COUNTED, RECORDER, CollectiveCall
from trainprobe.facts.jobs import Job, JobRank
from trainprobe.model.facts import Fact
from trainprobe.model.pids import HostPid

_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def join_launched_calls(facts: list[Fact]) -> list[Fact]:
    """Add one call for each rank that is ahead of others of its communicator. Recorders know more:
    where one was read, nothing is added.
    """
    recorded = {
        fact.cell for fact in facts if isinstance(fact, CollectiveCall) and fact.source == RECORDER
    }
    found: list[Fact] = []
    for fact in facts:
        if isinstance(fact, RasCommunicator) and fact.cell not in recorded:
            found += _calls(fact, _world_ranks(facts, fact))
    return [*facts, *found]


def _calls(communicator: RasCommunicator, world: dict[int, int]) -> Iterator[CollectiveCall]:
    """`world`: the world rank of each of its ranks; empty where not all of them are known."""
    members = tuple(sorted(world.values()))
    for name in dict.fromkeys(name for rank in communicator.ranks for name in rank.counts):
        counts = {rank.number: rank.counts.get(name, 0) for rank in communicator.ranks}
        most = max(counts.values())
        ahead = [number for number, count in counts.items() if count == most]
        if not world or len(ahead) == len(counts):
            continue
        for number in ahead:
            yield CollectiveCall(
                communicator.evidence,
                communicator.cell,
                world[number],
                number=most,
                op=_WORD.sub("_", name).lower(),
                group=f"{communicator.hash}/{name}",
                finished=False,
                source=COUNTED,
                members=members,
                members_known=True,
                desc=f"communicator {communicator.hash}",
            )


def _world_ranks(facts: list[Fact], communicator: RasCommunicator) -> dict[int, int]:
    """By the pid of each; the numbers themselves where the communicator is the whole world."""
    ranks = (*communicator.ranks, *communicator.missing)
    if communicator.size is None or len({rank.number for rank in ranks}) != communicator.size:
        return {}
    job = next(
        (one for one in facts if isinstance(one, Job) and one.cell == communicator.cell), None
    )
    if job is not None and job.world_size == communicator.size:
        return {rank.number: rank.number for rank in ranks}
    by_pid: dict[int, list[int]] = {}
    for fact in facts:
        if isinstance(fact, JobRank) and fact.cell == communicator.cell and fact.rank is not None:
            pid = fact.pid.pid if isinstance(fact.pid, HostPid) else fact.pid
            by_pid.setdefault(pid, []).append(fact.rank)
    return _unambiguous(ranks, by_pid)


def _unambiguous(ranks: tuple[RasRank, ...], by_pid: dict[int, list[int]]) -> dict[int, int]:
    """Empty where a pid is unknown, or two hosts have it: RAS names hosts by their addresses."""
    found = [by_pid.get(rank.pid or 0, []) for rank in ranks]
    if any(len(known) != 1 for known in found):
        return {}
    return {rank.number: known[0] for rank, known in zip(ranks, found, strict=True)}
