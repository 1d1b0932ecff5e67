"""The ports of stores that a job made for itself."""

from __future__ import annotations

from trainprobe.collect.collectors.sockets import Connection
from trainprobe.facts.jobs import Job
from trainprobe.facts.own_stores import join_own_stores

CELL = "live"
JOB = Job(("E1",), CELL, environment={"0": {"MASTER_PORT": "29500"}})


def connection(pid: int, peer: int, kind: str = "tcp") -> Connection:
    return Connection(
        ("E2",),
        CELL,
        0,
        pid=pid,
        kind=kind,
        local="127.0.0.1:7001",
        remote="127.0.0.1:41000",
        peer_pid=peer,
    )


def ports(one: Connection) -> set[str]:
    (job,) = (fact for fact in join_own_stores([JOB, one]) if isinstance(fact, Job))
    return set(job.store_ports)


def test_who_keeps_a_store_is_a_client_of_it() -> None:
    assert ports(connection(7, 7)) == {"29500", "7001", "41000"}


def test_connections_between_processes_are_no_store() -> None:
    assert ports(connection(7, 8)) == {"29500"}
    assert ports(connection(7, 7, kind="unix")) == {"29500"}
