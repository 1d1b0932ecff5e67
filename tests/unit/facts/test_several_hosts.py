"""Evidence of one job from several hosts: processes that have the same number are told apart, and the parts become one job."""

from __future__ import annotations

import json

from trainprobe.facts import Connection, Job, JobRank, ProcessState, SilentNode, read
from trainprobe.model.codec import to_json
from trainprobe.model.evidence import Evidence
from trainprobe.model.pids import HostPid
from trainprobe.model.subjects import Subject


def job(number: int, host: str, ranks: dict[int, int], world: int = 4, nnodes: int | None = None) -> Evidence:
    rows = [{"pid": pid, "rank": rank, "rank_source": "environment"} for rank, pid in ranks.items()]
    absent = [rank for rank in range(world) if rank not in ranks]
    data = {"host": host, "world_size": world, "world_size_source": "environment", "nnodes": nnodes, "ranks": rows, "absent": absent, "elsewhere": True}
    return Evidence(f"E{number}", "job", Subject("job", host=host), "job", data=data)


def process(number: int, host: str, rank: int, pid: int, ppid: int) -> Evidence:
    data = {"pid": pid, "ppid": ppid, "state": "S", "cmdline": f"python on {host}"}
    return Evidence(f"E{number}", "process", Subject("rank", host=host, rank=rank, pid=pid, role="rank"), "job", data=data)


def silent(number: int, host: str) -> Evidence:
    return Evidence(f"E{number}", "node.look", Subject("host", host=host), outcome="timed_out", reason=f"{host} did not answer within 5 s")


def reach(number: int, *nodes: str) -> Evidence:
    return Evidence(f"E{number}", "reach", data={"by": "slurm", "job": "7", "command": "trainprobe attach --slurm 7", "nodes": list(nodes)})


def test_parts_of_one_job_become_one_with_the_whole_world() -> None:
    facts = read([job(1, "node1", {0: 30, 1: 31}), job(2, "node2", {2: 30, 3: 31})])

    (whole,) = facts.of(Job)
    assert (whole.world_size, whole.absent, whole.elsewhere, whole.hosts, whole.evidence) == (4, (), False, ("node1", "node2"), ("E1", "E2"))
    assert {one.rank: one.host for one in facts.of(JobRank)} == {0: "node1", 1: "node1", 2: "node2", 3: "node2"}


def test_processes_of_one_number_on_two_hosts_are_two() -> None:
    records = [job(1, "node1", {0: 30}, 2), job(2, "node2", {1: 30}, 2), process(3, "node1", 0, 30, 1), process(4, "node2", 1, 30, 1)]
    found = {fact.rank: fact for fact in read(records).of(ProcessState)}

    assert found[0].pid != found[1].pid
    assert (str(found[0].pid), f"{found[1].pid}", found[0].ppid == found[1].ppid) == ("30@node1", "30@node2", False)


def test_a_pid_of_a_host_is_written_as_its_plain_number() -> None:
    assert json.dumps(to_json({"pids": [HostPid(30, "node2", 2)]})) == '{"pids": [30]}'


def test_one_host_alone_keeps_plain_pids() -> None:
    (rank,) = read([job(1, "node1", {0: 30}, 1)]).of(JobRank)
    assert (rank.pid, type(rank.pid)) == (30, int)


def test_who_is_missing_is_nowhere_else_once_every_node_was_asked() -> None:
    (whole,) = read([reach(1, "node1", "node2"), job(2, "node1", {0: 30, 1: 31}, nnodes=2), silent(3, "node2")]).of(Job)

    assert (whole.absent, whole.elsewhere, whole.silent) == ((2, 3), False, (("node2", "node2 did not answer within 5 s"),))


def test_nodes_that_nobody_asked_may_have_the_missing_ranks() -> None:
    (whole,) = read([job(1, "node1", {0: 30}, nnodes=3), job(2, "node2", {1: 30}, nnodes=3)]).of(Job)
    assert (whole.absent, whole.elsewhere) == ((2, 3), True)


def test_a_silent_node_is_a_fact_and_a_refusal() -> None:
    facts = read([silent(1, "node3")])
    assert [(one.host, one.late) for one in facts.of(SilentNode)] == [("node3", True)]
    assert [refusal.kind for refusal in facts.refused()] == ["node.look"]


def test_a_connection_between_hosts_knows_the_process_at_its_other_end() -> None:
    def sockets(number: int, host: str, rank: int, local: str, remote: str) -> Evidence:
        row = {"pid": 30, "rank": rank, "kind": "tcp", "state": "ESTAB", "local": local, "remote": remote}
        return Evidence(f"E{number}", "sockets", Subject("host", host=host), "job", data={"connections": [row]})

    one, other = "10.0.0.1:500", "10.0.0.2:600"
    records = [job(1, "node1", {0: 30}, 2), job(2, "node2", {1: 30}, 2), sockets(3, "node1", 0, one, other), sockets(4, "node2", 1, other, one)]
    found = {fact.rank: (fact.peer_rank, str(fact.peer_pid)) for fact in read(records).of(Connection)}
    assert found == {0: (1, "30@node2"), 1: (0, "30@node1")}


def test_loopback_means_another_socket_on_each_host() -> None:
    def sockets(number: int, host: str, rank: int, local: str, remote: str) -> Evidence:
        row = {"pid": 30, "rank": rank, "kind": "tcp", "state": "ESTAB", "local": local, "remote": remote}
        return Evidence(f"E{number}", "sockets", Subject("host", host=host), "job", data={"connections": [row]})

    one, other = "127.0.0.1:500", "127.0.0.1:600"
    records = [job(1, "node1", {0: 30}, 2), job(2, "node2", {1: 30}, 2), sockets(3, "node1", 0, one, other), sockets(4, "node2", 1, other, one)]
    assert [fact.peer_pid for fact in read(records).of(Connection)] == [None, None]
