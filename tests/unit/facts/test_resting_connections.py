"""Of the connections between ranks on several hosts only those stay that tell something."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from trainprobe.facts import Connection, Facts, ProcessState, read
from trainprobe.model.codec import to_json
from trainprobe.model.evidence import Evidence
from trainprobe.model.record_classes import classes_of, read_class
from trainprobe.model.subjects import Subject

HOSTS = {"node1": "10.0.0.1", "node2": "10.0.0.2"}
STORE = 29500
AWAITED = 7


def row(fd: int, rank: int, port: int, peer: int, silent_s: float, **more: Any) -> dict[str, Any]:
    """A connection of `rank` (of the host with its place) to `peer`, seen from the rank's host."""
    here, there = list(HOSTS.values())[rank], list(HOSTS.values())[peer]
    return {
        "pid": 30 + rank,
        "rank": rank,
        "fd": fd,
        "kind": "tcp",
        "state": "ESTAB",
        "local": f"{here}:{port if rank < peer else port + 1}",
        "remote": f"{there}:{port + 1 if rank < peer else port}",
        "peer_pid": None,
        "peer_rank": None,
        "rx_queue": 0,
        "tx_queue": 0,
        "retransmits": 0,
        "timer": "",
        "silent_s": silent_s,
        **more,
    }


def records(rows: Callable[[int, int], list[dict[str, Any]]]) -> list[Evidence]:
    """Two ranks on two hosts; `rows(rank, peer)` are the connections of each."""
    found = []
    for rank, host in enumerate(HOSTS):
        environment = {str(rank): {"MASTER_PORT": str(STORE)}}
        ranks = [{"pid": 30 + rank, "rank": rank, "rank_source": "environment"}]
        job = {"host": host, "world_size": 2, "ranks": ranks, "environment": environment}
        process = {
            "pid": 30 + rank,
            "state": "S",
            "role": "rank",
            "threads": [{"tid": 30 + rank, "state": "S", "syscall": f"45 {AWAITED:#x} 0x0 0x1"}],
        }
        of_rank = Subject("rank", host=host, rank=rank, pid=30 + rank, role="rank")
        of_host = Subject("host", host=host)
        place = 10 * rank
        found += [
            Evidence(f"E{place + 1}", "job", Subject("job", host=host), "job", data=job),
            Evidence(f"E{place + 2}", "process", of_rank, "job", data=process),
            Evidence(
                f"E{place + 3}",
                "sockets",
                of_host,
                "job",
                began=1000.0,
                data={"connections": rows(rank, 1 - rank), "owners_complete": True},
            ),
        ]
    return found


def in_classes(found: list[Evidence]) -> list[Evidence]:
    """As they come from nodes."""
    lines = json.loads(json.dumps(list(classes_of(map(to_json, found)))))
    several = [one for line in lines for one in read_class(line).evidence()]
    return sorted(several, key=lambda record: int(record.id[1:]))


def kept(facts: Facts, rank: int) -> list[int | None]:
    return [one.fd for one in facts.of(Connection, rank=rank)]


@pytest.mark.parametrize("sent", [list, in_classes])
def test_of_many_that_rest_few_stay(sent: Callable[[list[Evidence]], list[Evidence]]) -> None:
    def mesh(rank: int, peer: int) -> list[dict[str, Any]]:
        silent = {9: 40.0, 5: 60.0, AWAITED: 70.0, 8: 12.0, 10: 50.0, 11: 60.0}
        return [row(fd, rank, 40000 + 2 * fd, peer, each) for fd, each in silent.items()]

    facts = read(sent(records(mesh)))
    # the first from its address, the awaited one, the least silent one
    assert [kept(facts, rank) for rank in (0, 1)] == [[9, AWAITED, 8]] * 2
    ends = {(one.rank, one.peer_rank, str(one.peer_pid)) for one in facts.of(Connection)}
    assert ends == {(0, 1, "31@node2"), (1, 0, "30@node1")}


@pytest.mark.parametrize(
    "telling",
    [
        {"state": "CLOSE_WAIT"},
        {"rx_queue": 8},
        {"tx_queue": 8},
        {"retransmits": 3},
        {"timer": "retransmit"},
        {"remote": "93.184.216.34:443"},
    ],
)
def test_what_moves_or_leads_elsewhere_stays(telling: dict[str, Any]) -> None:
    def rows(rank: int, peer: int) -> list[dict[str, Any]]:
        found = [row(fd, rank, 40000 + 2 * fd, peer, float(fd)) for fd in range(20, 24)]
        return [*found, row(24, rank, 41000, peer, 24.0, **(telling if rank == 0 else {}))]

    facts = read(records(rows))
    assert kept(facts, 0) == [20, 24]


def test_silence_among_ranks_is_that_of_other_ports_than_the_stores() -> None:
    def rows(rank: int, peer: int) -> list[dict[str, Any]]:
        store = row(20, rank, STORE if rank == 0 else STORE - 1, peer, 1.0)
        return [store, *(row(fd, rank, 40000 + 2 * fd, peer, 90.0 - fd) for fd in range(21, 25))]

    facts = read(in_classes(records(rows)))
    assert kept(facts, 0) == [20, 24]


def test_where_one_host_tells_less_all_of_them_stay() -> None:
    def rows(rank: int, peer: int) -> list[dict[str, Any]]:
        found = [row(fd, rank, 40000 + 2 * fd, peer, 9.0) for fd in range(20, 24)]
        for one in found if rank == 0 else ():
            del one["silent_s"]
        return found

    facts = read(records(rows))
    assert [len(kept(facts, rank)) for rank in (0, 1)] == [4, 4]
    assert {one.peer_rank for one in facts.of(Connection)} == {0, 1}


@pytest.mark.parametrize("odd", [7, ["x"], {"a": 1}, None])
def test_a_table_that_makes_no_sense_ends_nothing(odd: Any) -> None:
    def rows(rank: int, peer: int) -> list[dict[str, Any]]:
        found = [row(fd, rank, 40000 + 2 * fd, peer, 9.0) for fd in range(20, 24)]
        return [{**one, "local": odd} for one in found] if rank == 0 else found

    facts = read(records(rows))
    assert len(facts.of(ProcessState)) == 2
    assert len(kept(facts, 1)) == 4
