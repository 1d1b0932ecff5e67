"""Rounds of pairs over real hosts: faults of links and hosts are planted, and the search names
them by what its members saw.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cluster.conftest import Cluster
from tests.cluster.hosts import Host
from trainprobe.case import Case
from trainprobe.facts import read
from trainprobe.facts.pairs import BadLink, BadNode, CommonFault, PairsDone, PairTry
from trainprobe.isolation import Plan, Verdict
from trainprobe.model.progress import Silence
from trainprobe.nodes.transports import Way, ssh_way
from trainprobe.ready.isolate import Meeting, isolate


def beside(hosts: Sequence[Host]) -> Way:
    """A way to the hosts that does not lead over their network, so that a dead link leaves them
    to be asked.
    """
    by = {host.name: host for host in hosts}
    return Way("ssh", tuple(by), lambda name, argv, _: tuple(by[name].argv(*argv)))


def searched(
    cluster: Cluster,
    folder: Path,
    way: Way | None = None,
    left_s: float = 60.0,
    plan: Plan | None = None,
) -> tuple[Verdict, Case]:
    names = [host.name for host in cluster.hosts]
    with Case.create(str(folder / "case"), "ready", []) as case:
        meeting = Meeting(plan=plan)
        verdict = isolate(
            names,
            way or beside(cluster.hosts),
            case,
            "quick",
            time.monotonic() + left_s,
            Silence(),
            python=sys.executable,
            meeting=meeting,
        )
    return verdict, case


def test_a_node_that_loses_packets_is_found_over_ssh(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way: ssh to each node, real traffic between them, evidence, facts."""
    monkeypatch.setenv("TRAINPROBE_SSH", f"ssh -F {cluster.ssh_config}")
    cluster[2].losing(2)
    verdict, case = searched(cluster, tmp_path, ssh_way([host.name for host in cluster.hosts]))
    facts = read(case.evidence)
    assert [(one.host, one.how, one.certain) for one in facts.of(BadNode)] == [
        ("node2", "loss", True)
    ], verdict
    assert (facts.of(BadLink), facts.of(CommonFault)) == ((), ())
    done = facts.one(PairsDone)
    assert done is not None
    assert (done.nodes, done.left, done.tried) == (
        ("node1", "node2", "node3", "node4"),
        (),
        len(facts.of(PairTry)),
    )
    assert all("node2" in one.members for one in facts.of(PairTry) if one.how == "loss")


def test_the_search_stops_at_its_deadline_and_says_what_is_left(
    cluster: Cluster, tmp_path: Path
) -> None:
    began = time.monotonic()
    verdict, case = searched(cluster, tmp_path, left_s=1.0)
    assert (verdict.clean, verdict.tried, len(verdict.left)) == (True, 0, 1)
    assert time.monotonic() - began < 3
    assert read(case.evidence).one(PairsDone, cell="pairs") is not None


Fault = Callable[[Cluster], None]
FAULTS: dict[str, tuple[Fault, str, str]] = {
    "deaf": (lambda found: found[2].deaf(), "node2", "one-way"),
    "all ports blocked": (lambda found: found[2].blocks("1024-65535"), "node2", "blocked-ports"),
    "some ports blocked": (lambda found: found[2].blocks("40000-50000"), "node2", "blocked-ports"),
    "losing 1 %": (lambda found: found[2].losing(1), "node2", "loss"),
    "limited": (lambda found: found[2].limited(1000), "node2", "slow"),
    "large packets dropped": (
        lambda found: found[2]._rules("input", "meta length > 1000 drop"),
        "node2",
        "large-packets",
    ),
    "cut": (lambda found: found[2].cut(), "node2", "unreachable"),
    "delayed": (lambda found: found[4].delayed(200), "node4", "delay"),
}


@pytest.mark.soak
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_host_is_named(name: str, cluster: Cluster, tmp_path: Path) -> None:
    fault, host, how = FAULTS[name]
    fault(cluster)
    verdict, _ = searched(cluster, tmp_path)
    assert [(one.host, one.how) for one in verdict.nodes] == [(host, how)]
    assert [link for link in verdict.links if link.certain] == []


@pytest.mark.soak
def test_one_way_between_two_good_hosts_is_a_link(cluster: Cluster, tmp_path: Path) -> None:
    cluster[2]._rules("input", f"ip saddr {cluster[1].address} drop")
    verdict, _ = searched(cluster, tmp_path)
    assert [(one.direction, one.how, one.certain) for one in verdict.links] == [
        (("node1", "node2"), "one-way", True)
    ]
    assert verdict.nodes == ()


@pytest.mark.soak
def test_a_frozen_host_is_silent(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINPROBE_SSH", f"ssh -F {cluster.ssh_config}")
    cluster[3].stop()
    verdict, _ = searched(cluster, tmp_path, ssh_way([host.name for host in cluster.hosts]))
    assert [(one.host, one.how) for one in verdict.nodes] == [("node3", "silent")]
    assert verdict.links == ()


@pytest.mark.soak
def test_healthy_hosts_are_never_blamed(cluster: Cluster, tmp_path: Path) -> None:
    for turn in range(20):
        verdict, _ = searched(cluster, tmp_path / str(turn))
        assert (verdict.clean, verdict.left) == (True, ()), turn


@pytest.mark.soak
@pytest.mark.torch
def test_gloo_meets_in_pairs_and_in_growing_groups(cluster: Cluster, tmp_path: Path) -> None:
    verdict, case = searched(
        cluster, tmp_path, left_s=300.0, plan=Plan("gloo", breadth=1, ladder=True)
    )
    tried = read(case.evidence).of(PairTry)
    assert (verdict.clean, verdict.left) == (True, ())
    assert {(one.arm, one.outcome) for one in tried} == {("gloo", "passed")}
    assert max(len(one.members) for one in tried) == 4
