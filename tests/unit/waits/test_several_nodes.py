"""A climb over several nodes: each node's own rungs are judged apart, nodes that came out alike
together, and silent ones are named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject
from trainprobe.pipelines import conclude
from trainprobe.report.text import text_of

NODES = ("node1", "node2", "node3")


class Told:
    """Evidence of one climb, numbered as it is added."""

    def __init__(self, *, nproc: int = 2) -> None:
        self.records: list[Evidence] = []
        self.add(
            "plan",
            data={
                "command": "diagnose",
                "nproc": nproc,
                "world_size": 3 * nproc,
                "nodes": list(NODES),
                "host": "login1",
                "rungs": [],
            },
        )

    def add(
        self,
        kind: str,
        *,
        subject: Subject | None = None,
        cell: str = "",
        reason: str = "",
        outcome: str = "ok",
        data: Mapping[str, Any],
    ) -> None:
        number = len(self.records) + 1
        found = Evidence(
            f"E{number}",
            kind,
            subject or Subject("job"),
            cell,
            began=1e9 + number,
            outcome=outcome,  # type: ignore[arg-type]
            reason=reason,
            data=data,
        )
        self.records.append(found)

    def host(self, node: str, outcome: str, says: str = "") -> None:
        self.add(
            "rung",
            cell=f"host@{node}",
            data={
                "rung": 10,
                "probe": "host",
                "nproc": 1,
                "outcome": outcome,
                "says": says,
                "took_s": 0.5,
                "hosts": [node],
            },
        )

    def ranks(self, nproc: int, outcome: str, says: str = "", ranks: tuple[int, ...] = ()) -> None:
        hosts = list(NODES[: nproc // 2])
        data = {
            "rung": 60,
            "probe": "gloo_control",
            "nproc": nproc,
            "outcome": outcome,
            "says": says,
            "took_s": 3.0,
            "ranks": list(ranks),
            "hosts": hosts,
        }
        self.add("rung", cell=f"gloo_control@{nproc}", data=data)


def test_a_failure_on_one_node_is_not_hidden_by_another_node_that_passed() -> None:
    told = Told()
    for node, outcome in zip(NODES, ("passed", "failed", "passed"), strict=True):
        told.host(node, outcome, "the disk is full" if outcome == "failed" else "")
    report = conclude(told.records, "diagnose", "case")

    assert report.verdict == "at-risk"
    assert [(suspect.hosts, suspect.ranks) for suspect in report.suspects] == [(("node2",), ())]
    assert report.causes[0].hosts == ("node2",)
    assert "On node2: the disk is full. Passed on node[1,3]." in " ".join(text_of(report).split())


def test_nodes_that_fail_alike_are_one_suspect_and_others_another() -> None:
    told = Told()
    for node, says in zip(
        NODES, ("the disk is full", "too few files", "the disk is full"), strict=True
    ):
        told.host(node, "failed", says)

    assert [suspect.hosts for suspect in conclude(told.records, "diagnose", "case").suspects] == [
        ("node1", "node3"),
        ("node2",),
    ]


def test_nodes_side_by_side_take_the_time_of_the_slowest() -> None:
    told = Told()
    for node in NODES:
        told.host(node, "passed")
    told.ranks(4, "passed")
    told.ranks(6, "passed")
    report = conclude(told.records, "diagnose", "case")

    text = " ".join(text_of(report).split())
    assert (report.verdict, report.world.size) == ("healthy", 6)
    assert "(node[1-3])" in text
    assert "0.5 s" in text
    assert "(4, 6 ranks)" in text


def test_the_ranks_of_a_node_that_fell_silent_are_named_with_it() -> None:
    told = Told()
    told.add(
        "node.look",
        subject=Subject("host", host="node3"),
        cell="gloo_control@6",
        outcome="timed_out",
        reason="node3 has said nothing for 10 s",
        data={},
    )
    for rank in range(4):
        subject = Subject("rank", NODES[rank // 2], rank, 70 + rank % 2)
        told.add(
            "rank.ended",
            subject=subject,
            cell="gloo_control@6",
            data={"how": "signalled", "signal": 15, "by_us": True, "at": 1e9},
        )
        frames = [
            {
                "name": "all_reduce",
                "file": "/site-packages/torch/distributed/distributed_c10d.py",
                "line": 9,
            }
        ]
        threads = [{"os_thread_id": 70 + rank % 2, "name": "MainThread", "frames": frames}]
        for look in (1, 2):
            told.add(
                "stacks.python",
                subject=subject,
                cell="gloo_control@6",
                data={"look": look, "threads": threads},
            )
    told.ranks(6, "timed_out", "node3 has said nothing for 10 s", (4, 5))
    report = conclude(told.records, "diagnose", "case")

    first = report.causes[0]
    assert (report.verdict, first.id, first.named, first.ranks, first.hosts) == (
        "hung",
        "node-not-answering",
        True,
        (4, 5),
        ("node3",),
    )
    assert [(row.rank, row.host) for row in report.world.ranks] == [
        (rank, NODES[rank // 2]) for rank in range(6)
    ]
    assert report.world.ranks[0].pid != report.world.ranks[2].pid  # 70 on two nodes


def test_a_node_that_never_answered_is_named_without_ranks() -> None:
    told = Told()
    told.add(
        "node.look",
        subject=Subject("host", host="node2"),
        cell="host@node2",
        outcome="timed_out",
        reason="node2 did not answer within 8 s",
        data={},
    )
    for node, outcome in zip(NODES, ("passed", "timed_out", "passed"), strict=True):
        told.host(node, outcome, "node2 did not answer within 8 s" if outcome != "passed" else "")
    first = conclude(told.records, "diagnose", "case").causes[0]

    assert (first.id, first.named, first.ranks, first.hosts) == (
        "node-not-answering",
        True,
        (),
        ("node2",),
    )
    assert first.summary == "node2 does not answer."
