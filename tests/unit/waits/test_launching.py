"""Launchers without a rank that wait at the rendezvous: since when, and what they were told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.waits.live_rows import CELL, facts_of, job
from trainprobe.facts import Connection, Facts, MainThread, ProcessState
from trainprobe.facts.jobs import Process
from trainprobe.facts.table import Refusal
from trainprobe.model.facts import Fact
from trainprobe.model.pids import HostPid
from trainprobe.model.subjects import Subject
from trainprobe.waits.live import live_views
from trainprobe.waits.meeting import end_point, told_apart


def agent(pid: int, age_s: float) -> list[Fact]:
    at = MainThread(
        (f"E{pid}",), CELL, None, pid=pid, role="launcher", leaf="store-wait", op="rendezvous"
    )
    process = ProcessState(
        (f"E{pid}",), CELL, None, pid=pid, role="launcher", looked_s=1.0, age_s=age_s
    )
    return [replace(at, looks=2), process]


@pytest.mark.parametrize(("second_s", "verdict"), [(90.0, "hung"), (31.0, "healthy")])
def test_agents_wait_for_each_other_since_the_last_one_came(second_s: float, verdict: str) -> None:
    of_two = replace(job(4, absent=(0, 1, 2, 3), elsewhere=True), nnodes=2)

    (found,) = live_views(facts_of([of_two], agent(9, 95.0), agent(10, second_s)))

    assert found.verdict == verdict
    assert "pids 9, 10" in found.says or verdict == "healthy"


ON_THREE = replace(job(3, absent=(0, 1, 2)), nnodes=3, hosts=("node1", "node2", "node3"))
ONE, TWO = HostPid(9, "node1", 1), HostPid(9, "node2", 2)


def met(pid: int) -> Connection:
    return Connection(("E7",), CELL, None, pid=pid, state="ESTAB", local="10.0.0.1:9")


def test_an_agent_without_a_connection_is_away_where_others_have_one() -> None:
    (found,) = live_views(facts_of([ON_THREE], agent(ONE, 95.0), agent(TWO, 95.0), [met(ONE)]))

    assert (found.verdict, found.groups[0].hosts) == ("hung", ("node2",))
    assert "the agent on node2 has no connection to the end point" in found.says


def test_a_node_where_nothing_of_the_job_runs_is_away() -> None:
    host = Subject("host", "node3")
    empty = Refusal("node.look", "unavailable", "No training process", host, CELL, "E8")
    seen = facts_of([ON_THREE], agent(ONE, 95.0), agent(TWO, 95.0), [met(ONE), met(TWO)]).all

    (found,) = live_views(Facts(seen, refused=[empty]))

    assert found.groups[0].hosts == ("node3",)
    assert found.says.endswith("nothing of the job runs on node3")


def test_agents_of_several_hosts_that_were_told_to_meet_at_localhost_never_do() -> None:
    told = Process(
        pid=ONE, role="launcher", cmdline="torchrun --rdzv-endpoint=localhost:29400 a.py"
    )
    of_three = replace(ON_THREE, others=(told,))

    (found,) = live_views(facts_of([of_three], agent(ONE, 95.0), agent(TWO, 95.0), [met(ONE)]))

    assert found.groups[0].hosts == ("node1", "node2")
    assert "told to meet the others at localhost:29400, which is its own host" in found.says


def test_the_end_point_is_that_of_the_options_or_of_the_environment() -> None:
    agent_ = Process(pid=9, role="launcher", cmdline="torchrun --rdzv-endpoint a:1 train.py")
    assert end_point(replace(job(4), others=(agent_,))) == ("a", "1")
    pod = {"PET_RDZV_ENDPOINT": "b:2", "MASTER_ADDR": "c"}
    assert end_point(replace(job(4), environment={"job": pod})) == ("b", "2")
    plain = {"MASTER_ADDR": "c", "MASTER_PORT": "3"}
    assert end_point(replace(job(4), environment={"0": plain})) == ("c", "3")


@pytest.mark.parametrize(
    ("first", "second", "differing"),
    [
        ("--rdzv-id 7 --rdzv_endpoint=a:1", "--rdzv_id=8 --rdzv-endpoint a:1", {"rdzv-id"}),
        ("--master-addr a --node-rank 0", "--master-addr a --node-rank 1", set()),
        ("--master_port 1", "", {"master-port"}),
    ],
)
def test_agents_differ_in_what_all_must_be_told_alike(
    first: str, second: str, differing: set[str]
) -> None:
    agents = tuple(
        Process(pid=pid, role="launcher", cmdline=f"torchrun --nnodes 2 {told} train.py")
        for pid, told in ((9, first), (10, second))
    )

    assert set(told_apart(replace(job(4), others=agents), (9, 10))) == differing
