"""What is said of nodes before a job starts: who is at fault, who must act, and what was not
measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from trainprobe.cli.exit_codes import ready_code_of
from trainprobe.model.diagnosis import Report
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject
from trainprobe.pipelines import conclude
from trainprobe.report.text import text_of

NODES = ("node1", "node2", "node3", "node4")
FEW = {
    "id": "lim.memlock",
    "state": "fail",
    "value": 65536,
    "says": "Limit memlock: soft 65536, hard 65536.",
    "severity": "blocker",
    "who": "admin",
}
WELL = {"id": "lim.memlock", "state": "ok", "value": -1, "says": "Limit memlock: unlimited."}
RING = (("node1", "node2"), ("node3", "node4"))


class Told:
    """Evidence of a readiness run, in the order in which it is told."""

    def __init__(self, nodes: Sequence[str] = NODES, by: str = "slurm", **more: Any) -> None:
        self.nodes = nodes
        self.records: list[Evidence] = []
        self.add(
            "ready",
            "",
            {"budget": "quick", "slot": "step", "by": by, "nodes": list(nodes), "nproc": 1, **more},
        )

    def add(
        self,
        kind: str,
        host: str,
        data: Mapping[str, Any],
        outcome: str = "ok",
        reason: str = "",
        cell: str = "checks",
    ) -> Told:
        subject = Subject("host", host) if host else Subject()
        self.records.append(
            Evidence(
                f"E{len(self.records) + 1}",
                kind,
                subject,
                cell,
                "machine",
                1.0,
                1.0,
                outcome,  # type: ignore[arg-type]
                reason,
                data,
            )
        )
        return self

    def checks(
        self,
        host: str,
        *rows: Mapping[str, Any],
        outcome: str = "ok",
        reason: str = "",
        dropped: Iterable[Mapping[str, str]] = (),
    ) -> Told:
        return self.add(
            "checks",
            host,
            {"program": "machine", "checks": list(rows), "open": "", "dropped": list(dropped)},
            outcome,
            reason,
        )

    def everybody(self, *rows: Mapping[str, Any], but: str = "") -> Told:
        for host in self.nodes:
            if host != but:
                self.checks(host, *rows)
        return self

    def values(self, **of_nodes: Mapping[str, Any]) -> Told:
        for host, values in of_nodes.items():
            self.add("values", host, {"values": values})
        return self

    def pairs(self, outcome: str = "passed", *pairs: tuple[str, str]) -> Told:
        for members in pairs or (("node1", "node2"), ("node3", "node4")):
            self.add(
                "pair",
                "",
                {
                    "round": 1,
                    "arm": "tcp",
                    "members": list(members),
                    "outcome": outcome,
                    "attempt": 1,
                },
                cell="pairs",
            )
        return self

    def report(self) -> Report:
        return conclude(self.records, "ready", "")


def readiness(report: Report) -> Mapping[str, Any]:
    found: Mapping[str, Any] = report.extra["readiness"]
    return found


def test_nodes_that_passed_everything_are_ready() -> None:
    report = (
        Told()
        .everybody(WELL)
        .values(**{node: {"version.torch": "2.9"} for node in NODES})
        .pairs()
        .report()
    )
    assert (report.verdict, report.conclusive, ready_code_of(report)) == ("healthy", True, 0)
    assert readiness(report)["ready"] is True
    assert readiness(report)["exclude"] == []
    assert "Ready: 3 checks passed on 4 nodes" in report.says


def test_one_node_with_a_failed_check_is_named_and_can_be_left_out() -> None:
    report = Told().everybody(WELL, but="node3").checks("node3", FEW).pairs().report()
    assert (report.verdict, ready_code_of(report)) == ("at-risk", 10)
    assert report.causes[0].hosts == ("node3",)
    assert report.causes[0].id == "memlock-limit"
    assert (readiness(report)["exclude"], readiness(report)["exclude_line"]) == (
        ["node3"],
        "--exclude=node3",
    )
    row = next(row for row in readiness(report)["checks"] if row["state"] == "fail")
    assert (row["id"], row["hosts"], row["who"], row["severity"]) == (
        "lim.memlock",
        ["node3"],
        "admin",
        "blocker",
    )
    text = text_of(report)
    assert "--exclude=node3" in text
    assert "state=drain" in text


def test_what_all_nodes_share_is_not_healed_by_leaving_nodes_out() -> None:
    report = Told().everybody(FEW).pairs().report()
    assert (report.verdict, ready_code_of(report), readiness(report)["exclude"]) == (
        "at-risk",
        1,
        [],
    )


def test_a_bad_node_beside_a_trouble_of_all_is_no_case_for_leaving_it_out_alone() -> None:
    small = {"id": "shm.size", "state": "fail", "value": 1, "says": "1 MiB.", "severity": "blocker"}
    report = Told().everybody(small, but="node3").checks("node3", small, FEW).pairs().report()
    assert (readiness(report)["exclude"], readiness(report)["shared"], ready_code_of(report)) == (
        ["node3"],
        True,
        1,
    )


def test_this_one_node_alone_is_never_left_out() -> None:
    report = Told(("here",), "here").checks("here", FEW).report()
    assert (report.verdict, ready_code_of(report), readiness(report)["exclude"]) == (
        "at-risk",
        1,
        [],
    )


@pytest.mark.parametrize(
    ("severity", "verdict", "code"),
    [("blocker", "undetermined", 3), ("degraded", "healthy", 0), ("warning", "healthy", 0)],
)
def test_a_blocker_that_could_not_be_measured_is_no_pass(
    severity: str, verdict: str, code: int
) -> None:
    unknown = {
        "id": "lim.memlock",
        "state": "unknown",
        "says": "It was not to be had.",
        "severity": severity,
    }
    report = Told(("here",), "here").checks("here", unknown).report()
    assert (report.verdict, ready_code_of(report), report.conclusive) == (verdict, code, code == 0)
    assert ready_code_of(report, inconclusive="pass") == 0
    assert ready_code_of(report, inconclusive="fail") == (1 if code == 3 else 0)


def test_a_program_that_was_ended_leaves_its_blockers_unknown() -> None:
    dropped = [{"id": "fs.hang", "reason": "storage gave no answer within 5 s"}]
    report = (
        Told(("here",), "here")
        .checks(
            "here", outcome="timed_out", reason="storage gave no answer within 5 s", dropped=dropped
        )
        .report()
    )
    assert (report.verdict, ready_code_of(report)) == ("undetermined", 3)
    assert [(row["id"], row["state"]) for row in readiness(report)["checks"]] == [
        ("fs.hang", "unknown")
    ]


def test_a_node_without_an_answer_is_at_fault_where_others_answer() -> None:
    told = (
        Told().everybody(WELL, but="node2").pairs("passed", ("node1", "node3"), ("node3", "node4"))
    )
    report = told.add(
        "node.look", "node2", {}, "timed_out", "node2 did not answer within 20 s"
    ).report()
    assert (report.verdict, ready_code_of(report), readiness(report)["exclude"]) == (
        "at-risk",
        10,
        ["node2"],
    )
    assert report.causes[0].hosts == ("node2",)


def test_where_no_node_answers_nobody_is_at_fault() -> None:
    told = Told()
    for node in NODES:
        told.add("node.look", node, {}, "timed_out", f"{node} did not answer within 20 s")
    report = told.report()
    assert (report.verdict, ready_code_of(report), readiness(report)["exclude"]) == (
        "undetermined",
        3,
        [],
    )


def test_several_nodes_whose_traffic_was_never_tried_are_not_ready() -> None:
    report = (
        Told(undone=[{"id": "pairs", "reason": "no time for it: 2 s were left"}])
        .everybody(WELL)
        .report()
    )
    assert (report.verdict, ready_code_of(report)) == ("undetermined", 3)
    assert "no time for it" in text_of(report)


def test_a_node_that_fails_with_good_partners_is_left_out_and_its_partners_are_not() -> None:
    told = (
        Told()
        .everybody(WELL)
        .pairs("passed", ("node1", "node2"), ("node1", "node4"), ("node2", "node4"))
    )
    report = told.pairs(
        "failed", ("node3", "node4"), ("node3", "node1"), ("node3", "node1"), ("node3", "node2")
    ).report()
    assert (report.verdict, readiness(report)["exclude"], ready_code_of(report)) == (
        "at-risk",
        ["node3"],
        10,
    )


def test_of_two_nodes_that_fail_with_each_other_nobody_is_left_out() -> None:
    told = Told(("node1", "node2")).everybody(WELL)
    report = told.pairs("failed", ("node1", "node2"), ("node1", "node2")).report()
    assert (report.verdict, readiness(report)["exclude"], ready_code_of(report)) == (
        "at-risk",
        [],
        1,
    )


def test_a_value_that_one_node_has_for_itself_is_told_with_the_majority() -> None:
    values = {node: {"version.torch": "2.9", "limit.nofile": 65536} for node in NODES} | {
        "node4": {"version.torch": "2.8", "limit.nofile": 65536}
    }
    report = Told().everybody(WELL).values(**values).pairs().report()
    (one,) = readiness(report)["differences"]
    assert (one["name"], one["value"], one["hosts"], one["majority"], one["majority_hosts"]) == (
        "version.torch",
        "2.8",
        ["node4"],
        "2.9",
        ["node1", "node2", "node3"],
    )
    assert "version.torch" in text_of(report)
    assert readiness(report)["exclude"] in ([], ["node4"])  # as the catalogue has it


def test_a_tie_blames_nobody() -> None:
    values = {
        node: {"version.torch": "2.8" if node in ("node1", "node2") else "2.9"} for node in NODES
    }
    report = Told().everybody(WELL).values(**values).pairs().report()
    (one,) = readiness(report)["differences"]
    assert (one["tie"], one["majority"], one["hosts"]) == (True, "", list(NODES))
    assert readiness(report)["exclude"] == []


def test_what_one_node_does_not_tell_is_unset_there() -> None:
    values: dict[str, dict[str, str]] = {
        node: {"env.NCCL_SOCKET_IFNAME": "eth0", "kernel": "6.1"} for node in NODES
    }
    del values["node2"]["env.NCCL_SOCKET_IFNAME"]
    (one,) = readiness(Told().everybody(WELL).values(**values).pairs().report())["differences"]
    assert (one["name"], one["value"], one["hosts"]) == (
        "env.NCCL_SOCKET_IFNAME",
        "none",
        ["node2"],
    )


def test_memory_of_the_same_machines_may_differ_a_little() -> None:
    values = {
        node: {"memory.total_bytes": 64_000_000_000 + place * 10_000_000}
        for place, node in enumerate(NODES)
    }
    assert readiness(Told().everybody(WELL).values(**values).pairs().report())["differences"] == []


@pytest.mark.parametrize(
    ("ahead", "within", "state"),
    [
        (0.4, 0.3, "ok"),
        (30.0, 0.3, "fail"),
        (-30.0, 0.3, "fail"),
        (1.2, 0.4, "ok"),
        (0.0, 2.0, "unknown"),
    ],
)
def test_a_clock_is_held_against_the_middle_one(ahead: float, within: float, state: str) -> None:
    told = Told().everybody(WELL).pairs()
    for place, node in enumerate(NODES):
        told.add(
            "node.look",
            node,
            {
                "clock_offset_s": 5.0 + place * 0.01 + (ahead if node == "node2" else 0.0),
                "clock_within_s": within,
            },
        )
    rows = [
        row
        for row in readiness(told.report())["checks"]
        if row["id"] == "host.skew" and "node2" in row["hosts"]
    ]
    assert [row["state"] for row in rows] == [state]
    assert state != "fail" or rows[0]["hosts"] == ["node2"]


def test_warnings_count_only_where_they_are_asked_to() -> None:
    warned = {"id": "lim.core", "state": "warn", "says": "No core files.", "severity": "warning"}
    report = Told(("here",), "here").checks("here", warned).report()
    assert (report.verdict, ready_code_of(report), ready_code_of(report, strict=True)) == (
        "healthy",
        0,
        1,
    )
    assert [notice.check for notice in report.warnings] == ["lim.core"]


@pytest.mark.parametrize(
    "data",
    [
        {"checks": "no list"},
        {
            "checks": [
                7,
                {},
                {"id": 3},
                {"id": "lim.nofile", "state": ["x"], "says": 9, "severity": "mad", "who": {}},
            ],
            "dropped": [None, {"id": "x"}],
        },
        {
            "checks": [
                {
                    "id": "a" * 10_000,
                    "state": "fail",
                    "says": "\x1b[2J" * 99,
                    "value": {"deep": [[[1]]]},
                }
            ],
            "dropped": 3,
        },
    ],
)
def test_foreign_records_end_no_report(data: Mapping[str, Any]) -> None:
    report = (
        Told()
        .everybody(WELL)
        .add("checks", "node2", data)
        .add("values", "node2", {"values": [1]})
        .add("ready", "", {"nodes": 3})
        .pairs()
        .report()
    )
    assert "\x1b" not in text_of(report)


def test_ranks_that_the_budget_cut_off_are_no_pass_and_those_not_tried_are_said() -> None:
    told = Told().everybody(WELL).pairs("passed", *RING)
    assert "; ranks across them were not tried." in told.report().says
    met = {
        "probe": "gloo_control",
        "rung": 60,
        "outcome": "timed_out",
        "nproc": 4,
        "deadline_s": 9.0,
        "hosts": list(NODES),
    }
    report = told.add("rung", "", met, cell="gloo_control@4").report()
    assert (report.verdict, report.conclusive, ready_code_of(report)) == ("undetermined", False, 3)
    assert (
        "ranks across 4 nodes had not met when the time was over, 9 s after their start"
        in report.says
    )


def test_what_all_nodes_share_does_not_hide_the_one_whose_traffic_fails() -> None:
    shared = {
        "id": "net.ifname",
        "state": "fail",
        "says": "No such interface.",
        "severity": "blocker",
        "who": "user",
    }
    told = Told().everybody(shared)
    for members in (("node1", "node2"), ("node4", "node1"), ("node2", "node4")):
        told.pairs("passed", members)
    for place, members in enumerate((("node3", "node1"), ("node3", "node2"), ("node3", "node4"))):
        told.add(
            "pair",
            "",
            {
                "round": 2 + place,
                "arm": "tcp",
                "members": list(members),
                "outcome": "failed",
                "how": "blocked-ports",
            },
            cell="pairs",
        )
    report = told.report()
    assert {cause.hosts for cause in report.causes if cause.named} == {NODES, ("node3",)}
    assert (readiness(report)["exclude"], readiness(report)["shared"], ready_code_of(report)) == (
        ["node3"],
        True,
        1,
    )
    assert readiness(report)["drain"][0].endswith("reason='trainprobe: its traffic fails'")


def test_of_a_pair_that_failed_once_nobody_is_taken_out() -> None:
    told = Told().everybody(WELL).pairs("passed", ("node1", "node2"))
    told.add(
        "pair",
        "",
        {
            "round": 1,
            "arm": "tcp",
            "members": ["node3", "node4"],
            "outcome": "failed",
            "how": "blocked-ports",
            "says": "9 of 13",
        },
        cell="pairs",
    )
    report = told.report()
    assert (report.verdict, readiness(report)["exclude"], ready_code_of(report)) == (
        "at-risk",
        [],
        1,
    )
    assert not any(
        "--exclude" in step or "drain" in step
        for cause in report.causes
        for one in cause.fixes
        for step in one.steps
    )


def test_a_check_that_could_not_be_made_does_not_count_as_passed() -> None:
    report = (
        Told()
        .everybody(WELL, {"id": "host.skew", "state": "unknown", "says": "It took too long."})
        .pairs("passed", *RING)
        .report()
    )
    assert report.verdict == "healthy"
    assert report.says.startswith("Ready: 2 checks passed on 4 nodes; 1 not known")
