"""Ranks that cannot reach the others are the suspects, with the hosts at both ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.waits.live_rows import (
    ALL_REDUCE,
    C10D,
    CELL,
    MAIN,
    facts_of,
    job,
    process,
    view,
)
from trainprobe.causes.processes.launcher_lost import CAUSE as LAUNCHER_LOST
from trainprobe.causes.scene import Scene
from trainprobe.facts import Connection, Job, JobRank
from trainprobe.model.facts import Fact
from trainprobe.model.pids import HostPid
from trainprobe.stacks.frames import Frame
from trainprobe.waits.meeting import ranks_told_apart

AT_THE_STORE = (
    MAIN,
    Frame("init_process_group", C10D, 1700),
    Frame("_create_c10d_store", "/env/torch/distributed/rendezvous.py", 189),
)
HOSTS = {0: "node1", 1: "node2", 2: "node3"}
NODE1, NODE2 = "10.0.0.1", "10.0.0.2"


def told(*addresses: str, name: str = "MASTER_ADDR") -> Job:
    environment = {str(rank): {name: value} for rank, value in enumerate(addresses)}
    return replace(job(len(addresses)), environment=environment)


def on_hosts(whole: Job, stack: tuple[Frame, ...]) -> list[Fact | list[Fact]]:
    facts: list[Fact | list[Fact]] = [whole]
    for rank, host in HOSTS.items():
        pid = HostPid(10 + rank, host, rank + 1)
        facts.append(JobRank(("E1",), CELL, rank, pid=pid, host=host))
        facts.append(process(pid, stack, stack, rank=rank))
    return facts


@pytest.mark.parametrize(
    ("addresses", "ranks", "sure"),
    [
        ((NODE1, NODE2, NODE1), (1,), True),
        (("node1", "localhost", "node1"), (1,), True),
        (("node1", "node1", NODE1), (2,), False),
        (("node1", "node1.site", "node1"), (1,), False),
    ],
)
def test_the_fewest_that_were_told_another_address(
    addresses: tuple[str, ...], ranks: tuple[int, ...], sure: bool
) -> None:
    apart = ranks_told_apart(told(*addresses), HOSTS)

    assert apart is not None
    assert (apart.ranks, apart.sure) == (ranks, sure)


def test_the_host_of_the_store_may_call_itself_localhost() -> None:
    assert ranks_told_apart(told("localhost", "node1", "node1"), HOSTS) is None


def test_ranks_with_another_port_are_the_suspects() -> None:
    whole = told("29500", "29501", "29500", name="MASTER_PORT")

    found = view(*on_hosts(whole, AT_THE_STORE))

    (group,) = found.groups
    assert (found.verdict, group.ranks, group.hosts) == ("hung", (1,), ("node2",))
    assert "another MASTER_PORT than the rest, 29501" in found.says


def test_a_connect_without_an_answer_blames_both_of_its_hosts() -> None:
    def connection(rank: int, local: str, remote: str, state: str) -> Connection:
        pid = HostPid(10 + rank, HOSTS[rank], rank + 1)
        return Connection(
            ("E5",), CELL, rank, pid=pid, kind="tcp", state=state, local=local, remote=remote
        )

    found = view(
        *on_hosts(job(3), ALL_REDUCE),
        connection(1, f"{NODE2}:40000", f"{NODE1}:29500", "ESTAB"),
        connection(2, "10.0.0.3:40001", f"{NODE2}:33001", "SYN_SENT"),
    )

    (group,) = found.groups
    assert (group.ranks, group.hosts, group.victims) == ((2,), ("node2", "node3"), (0, 1))
    assert found.says == "rank 2 gets no answer from node2"


def test_ranks_that_go_on_without_their_launcher_are_at_risk() -> None:
    moves = [(MAIN, Frame("step", "/job/train.py", line)) for line in (10, 20)]
    ranks = [process(10 + rank, *moves, rank=rank) for rank in range(2)]

    assert view(job(2), *ranks).verdict == "healthy"
    found = view(replace(job(2), orphaned=(11,)), *ranks)
    assert (found.verdict, found.conclusive) == ("at-risk", True)
    assert "the launcher of rank 1" in found.says
    (group,) = found.groups
    assert (group.mode, group.ranks) == ("check", (1,))


def test_the_store_goes_with_the_launcher_of_rank_0() -> None:
    lost = replace(told("node1", "node1", "node1"), orphaned=(HostPid(10, "node1", 1),))
    facts = on_hosts(lost, AT_THE_STORE)

    (group,) = view(*facts).groups
    scene = Scene(facts_of(*facts), group)
    assert sum(row.points for row in LAUNCHER_LOST.weigh(scene)) == 19
    assert LAUNCHER_LOST.summary(scene) == (
        "The launcher of rank 0 on node1 is gone, and with it the store at which all ranks wait"
    )
    steps = [step for fix in LAUNCHER_LOST.fixes_for(scene) for step in fix.steps]
    assert "on node1: kill 10" in steps
