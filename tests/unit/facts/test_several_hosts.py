"""Evidence of one job from several hosts: processes that have the same number are told apart,
and the parts become one job.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainprobe.facts import (
    Connection,
    Job,
    JobRank,
    MemoryLimit,
    OomKill,
    PortCounters,
    Pressure,
    ProcessState,
    SilentNode,
    read,
)
from trainprobe.facts.several_hosts import with_host
from trainprobe.model.codec import to_json
from trainprobe.model.evidence import Evidence
from trainprobe.model.pids import HostPid
from trainprobe.model.subjects import Subject


def job(
    number: int, host: str, ranks: dict[int, int], world: int = 4, nnodes: int | None = None
) -> Evidence:
    rows = [{"pid": pid, "rank": rank, "rank_source": "environment"} for rank, pid in ranks.items()]
    absent = [rank for rank in range(world) if rank not in ranks]
    data = {
        "host": host,
        "world_size": world,
        "world_size_source": "environment",
        "nnodes": nnodes,
        "ranks": rows,
        "absent": absent,
        "elsewhere": True,
    }
    return Evidence(f"E{number}", "job", Subject("job", host=host), "job", data=data)


def process(number: int, host: str, rank: int, pid: int, ppid: int) -> Evidence:
    data = {"pid": pid, "ppid": ppid, "state": "S", "cmdline": f"python on {host}"}
    return Evidence(
        f"E{number}",
        "process",
        Subject("rank", host=host, rank=rank, pid=pid, role="rank"),
        "job",
        data=data,
    )


def silent(number: int, host: str) -> Evidence:
    return Evidence(
        f"E{number}",
        "node.look",
        Subject("host", host=host),
        outcome="timed_out",
        reason=f"{host} did not answer within 5 s",
    )


def reach(number: int, *nodes: str) -> Evidence:
    return Evidence(
        f"E{number}",
        "reach",
        data={
            "by": "slurm",
            "job": "7",
            "command": "trainprobe attach --slurm 7",
            "nodes": list(nodes),
        },
    )


def test_parts_of_one_job_become_one_with_the_whole_world() -> None:
    facts = read([job(1, "node1", {0: 30, 1: 31}), job(2, "node2", {2: 30, 3: 31})])

    (whole,) = facts.of(Job)
    assert (whole.world_size, whole.absent, whole.elsewhere, whole.hosts, whole.evidence) == (
        4,
        (),
        False,
        ("node1", "node2"),
        ("E1", "E2"),
    )
    assert {one.rank: one.host for one in facts.of(JobRank)} == {
        0: "node1",
        1: "node1",
        2: "node2",
        3: "node2",
    }


def test_processes_of_one_number_on_two_hosts_are_two() -> None:
    records = [
        job(1, "node1", {0: 30}, 2),
        job(2, "node2", {1: 30}, 2),
        process(3, "node1", 0, 30, 1),
        process(4, "node2", 1, 30, 1),
    ]
    found = {fact.rank: fact for fact in read(records).of(ProcessState)}

    assert found[0].pid != found[1].pid
    assert (str(found[0].pid), f"{found[1].pid}", found[0].ppid == found[1].ppid) == (
        "30@node1",
        "30@node2",
        False,
    )


def test_a_pid_of_a_host_is_written_as_its_plain_number() -> None:
    assert json.dumps(to_json({"pids": [HostPid(30, "node2", 2)]})) == '{"pids": [30]}'


def test_one_host_alone_keeps_plain_pids() -> None:
    (rank,) = read([job(1, "node1", {0: 30}, 1)]).of(JobRank)
    assert (rank.pid, type(rank.pid)) == (30, int)


def test_who_is_missing_is_nowhere_else_once_every_node_was_asked() -> None:
    (whole,) = read(
        [reach(1, "node1", "node2"), job(2, "node1", {0: 30, 1: 31}, nnodes=2), silent(3, "node2")]
    ).of(Job)

    assert (whole.absent, whole.elsewhere, whole.silent) == (
        (2, 3),
        False,
        (("node2", "node2 did not answer within 5 s"),),
    )


def test_nodes_that_nobody_asked_may_have_the_missing_ranks() -> None:
    (whole,) = read([job(1, "node1", {0: 30}, nnodes=3), job(2, "node2", {1: 30}, nnodes=3)]).of(
        Job
    )
    assert (whole.absent, whole.elsewhere) == ((2, 3), True)


def test_a_silent_node_is_a_fact_and_a_refusal() -> None:
    facts = read([silent(1, "node3")])
    assert [(one.host, one.late) for one in facts.of(SilentNode)] == [("node3", True)]
    assert [refusal.kind for refusal in facts.refused()] == ["node.look"]


def test_a_connection_between_hosts_knows_the_process_at_its_other_end() -> None:
    def sockets(number: int, host: str, rank: int, local: str, remote: str) -> Evidence:
        row = {
            "pid": 30,
            "rank": rank,
            "kind": "tcp",
            "state": "ESTAB",
            "local": local,
            "remote": remote,
        }
        return Evidence(
            f"E{number}", "sockets", Subject("host", host=host), "job", data={"connections": [row]}
        )

    one, other = "10.0.0.1:500", "10.0.0.2:600"
    records = [
        job(1, "node1", {0: 30}, 2),
        job(2, "node2", {1: 30}, 2),
        sockets(3, "node1", 0, one, other),
        sockets(4, "node2", 1, other, one),
    ]
    found = {
        fact.rank: (fact.peer_rank, str(fact.peer_pid)) for fact in read(records).of(Connection)
    }
    assert found == {0: (1, "30@node2"), 1: (0, "30@node1")}


def test_loopback_means_another_socket_on_each_host() -> None:
    def sockets(number: int, host: str, rank: int, local: str, remote: str) -> Evidence:
        row = {
            "pid": 30,
            "rank": rank,
            "kind": "tcp",
            "state": "ESTAB",
            "local": local,
            "remote": remote,
        }
        return Evidence(
            f"E{number}", "sockets", Subject("host", host=host), "job", data={"connections": [row]}
        )

    one, other = "127.0.0.1:500", "127.0.0.1:600"
    records = [
        job(1, "node1", {0: 30}, 2),
        job(2, "node2", {1: 30}, 2),
        sockets(3, "node1", 0, one, other),
        sockets(4, "node2", 1, other, one),
    ]
    assert [fact.peer_pid for fact in read(records).of(Connection)] == [None, None]


def of_host(number: int, kind: str, host: str, **data: Any) -> Evidence:
    return Evidence(
        f"E{number}", kind, Subject("host", host=host), "job", began=float(number), data=data
    )


TWO = (job(1, "node1", {0: 30}, 2), job(2, "node2", {1: 30}, 2))


def test_what_a_cgroup_counts_on_one_host_is_not_taken_from_what_it_counts_on_another() -> None:
    looks = [
        of_host(3, "cgroup", "node1", oom_kill=0, limit_bytes=100, peak_bytes=10),
        of_host(4, "cgroup", "node2", oom_kill=5, peak_bytes=900),
    ]
    found = {
        fact.host: (fact.oom_kill_rise, fact.limit_bytes, fact.peak_bytes)
        for fact in read([*TWO, *looks]).of(MemoryLimit)
    }
    assert found == {"node1": (None, 100, 10), "node2": (None, None, 900)}


def test_errors_of_a_port_are_those_between_two_looks_at_one_host() -> None:
    def ports(number: int, host: str, look: int, retransmits: int) -> Evidence:
        return of_host(
            number,
            "ports",
            host,
            look=look,
            ports=[{"port": "tcp", "kind": "tcp", "counters": {"RetransSegs": retransmits}}],
        )

    records = [
        *TWO,
        ports(3, "node1", 1, 10),
        ports(4, "node2", 1, 90_000),
        ports(5, "node1", 2, 10),
        ports(6, "node2", 2, 90_001),
    ]
    assert {fact.host: fact.retransmits for fact in read(records).of(PortCounters)} == {
        "node1": 0,
        "node2": 1,
    }


def test_pressure_is_told_of_each_host() -> None:
    records = [
        *TWO,
        *(
            of_host(number, "pressure", host, look=1, runnable=number)
            for number, host in ((3, "node1"), (4, "node2"))
        ),
    ]
    assert {fact.host: fact.runnable for fact in read(records).of(Pressure)} == {
        "node1": 3,
        "node2": 4,
    }


def test_a_kill_in_the_log_of_one_kernel_is_of_a_process_of_that_host() -> None:
    line = "Memory cgroup out of memory: Killed process 30 (python) total-vm:1kB, anon-rss:1kB"
    facts = read([*TWO, of_host(3, "kernel_log", "node2", lines=[{"text": line, "at": 1.0}])])
    (kill,) = facts.of(OomKill)
    pids = {one.host: one.pid for one in facts.of(JobRank)}
    assert (str(kill.pid), kill.pid == pids["node2"], kill.pid == pids["node1"]) == (
        "30@node2",
        True,
        False,
    )


def test_a_rank_that_two_hosts_claim_is_told() -> None:
    (whole,) = read([job(1, "node1", {0: 30, 1: 31}, 2), job(2, "node2", {0: 30}, 2)]).of(Job)
    assert whole.claimed == {0: ("node1", "node2")}


def test_who_guessed_a_number_that_another_host_knows_has_the_one_that_is_left() -> None:
    guess = job(1, "node1", {0: 100}, world=3)
    guess.data["ranks"][0]["rank_source"] = "start-order"
    sure = job(2, "node2", {0: 100, 2: 102}, world=3)

    facts = read([guess, process(3, "node1", 0, 100, 1), sure])

    assert facts.of(Job)[0].claimed == {}
    assert {one.host: one.rank for one in facts.of(JobRank) if one.rank != 2} == {
        "node1": 1,
        "node2": 0,
    }
    assert [one.rank for one in facts.of(ProcessState)] == [1]


def test_the_only_host_that_answered_has_pids_with_its_name_too() -> None:
    (rank,) = read([reach(1, "node1", "node2"), job(2, "node1", {0: 30}, 2)]).of(JobRank)
    assert str(rank.pid) == "30@node1"


def test_a_number_that_no_process_has_stays_a_number() -> None:
    records = [
        *TWO,
        Evidence(
            "E3",
            "process",
            Subject("rank", host="node1", rank=0, pid=2**50, role="rank"),
            "job",
            data={"pid": 2**50, "state": "S"},
        ),
    ]
    assert [fact.pid for fact in read(records).of(ProcessState)] == [2**50]


def looked(number: int, host: str, reason: str, **data: Any) -> Evidence:
    return Evidence(
        f"E{number}",
        "node.look",
        Subject("host", host=host),
        outcome="unavailable",
        reason=reason,
        data=data,
    )


def test_a_node_that_answered_that_nothing_runs_there_is_not_silent() -> None:
    records = [
        reach(1, "node1", "node2"),
        job(2, "node1", {0: 30}, 2),
        looked(3, "node2", "No training process of job 7 runs on node2.", answered=True),
    ]
    facts = read(records)
    (whole,) = facts.of(Job)
    assert (facts.of(SilentNode), whole.absent, whole.elsewhere) == ((), (1,), False)


@pytest.mark.parametrize(
    ("reason", "late"),
    [
        ("node2 cannot be looked at: Permission denied (publickey).", False),
        ("node2 cannot be looked at: bash: python: command not found", False),
        ("node2 cannot be looked at: ssh: connect to host node2 port 22: No route to host", True),
        ("node2 cannot be looked at: Connection timed out during banner exchange", True),
    ],
)
def test_what_runs_on_a_node_that_refused_to_be_looked_at_nobody_knows(
    reason: str, late: bool
) -> None:
    facts = read(
        [reach(1, "node1", "node2"), job(2, "node1", {0: 30}, 2), looked(3, "node2", reason)]
    )
    (whole,) = facts.of(Job)
    assert ([one.late for one in facts.of(SilentNode)], whole.elsewhere) == ([late], not late)


@pytest.mark.parametrize(
    ("reason", "unstarted"),
    [
        (
            (
                "node2 cannot be looked at: slurmstepd: error: execve(): /env/bin/python: No such"
                " file or directory"
            ),
            True,
        ),
        (
            (
                "node2 cannot be looked at: slurmstepd: error: execve(): /env/bin/python: Exec"
                " format error"
            ),
            True,
        ),
        (
            (
                "node2 cannot be looked at: python: error while loading shared libraries:"
                " libx.so.1: cannot open shared object file"
            ),
            True,
        ),
        (
            (
                "node2 cannot be looked at: srun: error: Task launch for StepId=7.1 failed on node"
                " node2: Communication failure"
            ),
            True,
        ),
        (
            (
                "node2 cannot be looked at: srun: error: Unable to create step for job 7: Requested"
                " nodes are busy"
            ),
            False,
        ),
        ("node2 cannot be looked at: user@node2: Permission denied (publickey).", False),
    ],
)
def test_a_node_on_which_nothing_can_be_started(reason: str, unstarted: bool) -> None:
    (one,) = read([looked(1, "node2", reason)]).of(SilentNode)
    assert (one.unstarted, one.late) == (unstarted, False)


def test_a_node_that_was_never_asked_is_not_late() -> None:
    (one,) = read(
        [looked(1, "node2", "node2 was not asked: the time was over, timed out", asked=False)]
    ).of(SilentNode)
    assert one.late is False


def test_a_node_is_not_called_what_no_host_can_be_called() -> None:
    assert read([looked(1, "$(reboot)", "No route to host")]).of(SilentNode) == ()


def test_hosts_that_somebody_listed_need_not_be_all() -> None:
    listed = Evidence(
        "E1",
        "reach",
        data={
            "by": "ssh",
            "command": "trainprobe attach --hosts node1,node2",
            "nodes": ["node1", "node2"],
        },
    )
    (whole,) = read([listed, job(2, "node1", {0: 30}, 3), job(3, "node2", {1: 30}, 3)]).of(Job)
    assert (whole.absent, whole.elsewhere) == ((2,), True)


def test_a_process_of_one_host_is_one_number_however_often_it_is_named() -> None:
    named = [{"pid": 40, "n": n} for n in range(3)]
    record = Evidence("E1", "process", Subject("process", "a", 0, 40), data={"rows": named})
    told = with_host(record, {"a": 1})
    pids = [told.subject.pid, *(row["pid"] for row in told.data["rows"])]
    assert all(pid is pids[0] for pid in pids)
    assert str(pids[0]) == "40@a"
