"""Amounts that nodes have more or less of: more is no fault, and a little less is none either."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainprobe.facts import Difference, NodeValues, ReadyPlan
from trainprobe.facts.differences import join_differences

GIB = 2**30


def told(name: str, *values: str) -> list[tuple[tuple[str, ...], str, bool]]:
    """The nodes that differ in this value, with the severity and whether it is a tie."""
    nodes = [
        NodeValues((f"E{number}",), "checks", None, f"node{number}", "machine", {name: value})
        for number, value in enumerate(values, 1)
    ]
    return [
        (one.hosts, one.severity, one.tie)
        for one in join_differences([*nodes])
        if isinstance(one, Difference)
    ]


@pytest.mark.parametrize(
    ("name", "most", "other", "severity"),
    [
        ("shm.size_bytes", f"{GIB}", f"{3 * GIB // 4}", "warning"),
        ("shm.size_bytes", f"{GIB}", f"{2 * GIB}", "warning"),
        ("shm.size_bytes", f"{GIB}", f"{GIB // 16}", "degraded"),
        ("memory.total_bytes", "1000", "2000", "warning"),
        ("memory.total_bytes", "1000", "900", "degraded"),
        ("limit.nofile", "65536", "unlimited", "warning"),
        ("limit.nofile", "65536", "40000", "warning"),
        ("limit.nofile", "65536", "256", "degraded"),
        ("cpu_quota", "none", "0.5", "degraded"),
        ("cpus", "8", "16", "warning"),
        ("cpus", "8", "4", "degraded"),
        ("net.interface", "eth", "eth mgmt", "warning"),
        ("net.interface", "eth ib", "eth", "warning"),
        ("net.interface", "eth", "mgmt eth", "degraded"),
        ("net.interface", "eth", "none", "degraded"),
        ("version.torch", "2.13.0", "2.9.1", "blocker"),
    ],
)
def test_one_node_with_another_amount(name: str, most: str, other: str, severity: str) -> None:
    assert told(name, most, other, most, most) == [(("node2",), severity, False)]


def test_a_little_more_or_less_memory_is_the_same() -> None:
    assert told("memory.total_bytes", "1000", "980", "1000", "1010") == []


def test_halves_that_both_have_enough_are_only_told() -> None:
    assert told("shm.size_bytes", f"{GIB}", f"{GIB}", f"{3 * GIB // 4}", f"{3 * GIB // 4}") == [
        (("node1", "node2", "node3", "node4"), "warning", True)
    ]


def test_a_value_that_a_cut_off_program_did_not_report_is_not_measured() -> None:
    whole = [
        NodeValues(
            (f"E{n}",), "checks", None, f"node{n}", "machine", {"cpus": "8", "thp": "always"}
        )
        for n in (1, 2)
    ]
    cut = NodeValues(("E3",), "checks", None, "node3", "machine", {"cpus": "8"}, complete=False)
    assert not [fact for fact in join_differences([*whole, cut]) if isinstance(fact, Difference)]
    named = join_differences([*whole, replace(cut, complete=True)])
    assert [fact.hosts for fact in named if isinstance(fact, Difference)] == [("node3",)]


def test_variables_of_the_callers_shell_are_not_those_of_ssh() -> None:
    nodes = [
        NodeValues((), "checks", None, f"node{number}", "launch_plan", values)
        for number, values in enumerate(
            ({"env.LD_LIBRARY_PATH": "/a", "version.torch": "2.9"}, {"version.torch": "2.13"}, {}),
            1,
        )
    ]

    def differing(*plan: ReadyPlan) -> set[str]:
        joined = join_differences([*nodes, *plan])
        return {one.name for one in joined if isinstance(one, Difference)}

    assert differing(ReadyPlan()) == {"env.LD_LIBRARY_PATH", "version.torch"}
    assert differing(ReadyPlan(by="ssh", shell="node1")) == {"version.torch"}
