"""Causes in groups of `ready`: each check of the catalogue that matters is spoken for, and what
brings about other signs comes first.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainprobe import causes
from trainprobe.causes.priors import load_priors
from trainprobe.checks import CheckSpec, catalogue
from trainprobe.facts import Difference, Facts, HostCheck, ReadyPlan, Rung, SilentNode
from trainprobe.facts.pairs import BadLink, BadNode
from trainprobe.model.diagnosis import PlacedCause
from trainprobe.model.facts import Fact
from trainprobe.ranking import rank_group
from trainprobe.waits import SuspectGroup
from trainprobe.waits.readiness import of_rungs
from trainprobe.waits.readiness_report import to_leave_out

NODES = ("node1", "node2", "node3", "node4")
PLAN = ReadyPlan(("E1",), "", None, "quick", "step", "slurm", NODES)
MATTERS = [
    spec
    for spec in catalogue().values()
    if spec.severity in ("blocker", "degraded") and spec.illness and not spec.id.endswith(".same")
]


def ranked(
    *facts: Fact,
    unready: tuple[str, ...],
    hosts: tuple[str, ...] = ("node3",),
    links: tuple[tuple[str, str], ...] = (),
) -> PlacedCause:
    """The first cause of one group of `ready` over these facts."""
    group = SuspectGroup(
        "checks",
        "ready",
        (),
        "failed-first",
        "node3: a check fails",
        "check",
        hosts=hosts,
        unready=unready,
        links=links,
    )
    return rank_group(Facts([PLAN, *facts]), group, causes.built(), load_priors()).placed[0]


def failed(
    name: str, host: str = "node3", says: str = "It is not as it must be.", fix: str = "mend it"
) -> HostCheck:
    return HostCheck(
        ("E2",), "checks", None, name, "fail", "", says, fix, "", host, "blocker", "admin"
    )


def other(name: str) -> Difference:
    return Difference(
        ("E3",),
        "checks",
        None,
        name,
        "a",
        ("node3",),
        "b",
        ("node1", "node2", "node4"),
        check="host.same",
        severity="degraded",
        who="user",
        fix="make them alike",
    )


@pytest.mark.parametrize("spec", MATTERS, ids=lambda spec: spec.id)
def test_a_failed_check_names_the_illness_that_the_catalogue_says(spec: CheckSpec) -> None:
    first = ranked(failed(spec.id), unready=(spec.id,))

    assert (first.id, first.named, first.hosts) == (spec.illness, True, ("node3",))
    assert first.summary.startswith("node3 ")
    assert "It is not as it must be" in first.summary
    assert "mend it" in first.fixes[0].steps
    assert any("--exclude=node3" in step for one in first.fixes for step in one.steps)
    assert not any("state=drain" in step for one in first.fixes for step in one.steps), (
        "the report has one such command, for all causes together"
    )


@pytest.mark.parametrize(
    ("value", "illness"),
    [
        ("version.torch", "environment-differs"),
        ("version.nccl", "nccl-version-mismatch"),
        ("kernel", "environment-differs"),
        ("net.resolves", "hostname-resolution"),
        ("env.OMP_NUM_THREADS", "environment-differs"),
        ("env.GLOO_SOCKET_IFNAME", "wrong-network-interface"),
        ("env.NCCL_IB_HCA", "nccl-env-misconfig"),
        ("env.NCCL_SOCKET_IFNAME", "wrong-network-interface"),
        ("limit.memlock", "memlock-limit"),
        ("limit.nofile", "fd-exhaustion"),
        ("limit.stack", "address-space-limit"),
        ("mount./data", "mount-missing"),
        ("cpu_quota", "cpu-quota"),
        ("rdma.mlx5_0", "ib-roce-misconfig"),
        ("shm.size_bytes", "shm-exhausted"),
    ],
)
def test_a_value_unlike_the_others_names_its_illness(value: str, illness: str) -> None:
    first = ranked(other(value), unready=(f"same.{value}",))

    assert (first.id, first.named) == (illness, True)
    assert f"{value} is a on node3 and b on node[1-2,4]" in first.summary
    assert "make them alike" in first.fixes[0].steps


@pytest.mark.parametrize(
    ("how", "illness"),
    [
        ("blocked-ports", "firewall-or-route"),
        ("one-way", "firewall-or-route"),
        ("refused", "firewall-or-route"),
        ("unreachable", "firewall-or-route"),
        ("loss", "link-degraded"),
        ("delay", "link-degraded"),
        ("slow", "link-degraded"),
        ("wrong-address", "hostname-resolution"),
        ("silent", "node-not-answering"),
        ("wrong-result", "network-fault"),
        ("gloo-only", "wrong-network-interface"),
        ("fabric", "ib-roce-misconfig"),
        ("failed", "network-fault"),
        ("large-packets", "network-fault"),
    ],
)
def test_traffic_that_fails_names_its_illness_for_a_node_and_for_a_link(
    how: str, illness: str
) -> None:
    node = BadNode(
        ("E4",), "pairs", None, "node3", how, "node3: with each partner it fails", ("E5",)
    )
    link = BadLink(
        ("E4",),
        "pairs",
        None,
        "node3",
        "node4",
        "node3->node4",
        how,
        "node3 to node4 fails",
        ("E5",),
    )

    first = ranked(node, unready=("pair",))
    assert (first.id, first.named, first.hosts) == (illness, True, ("node3",))
    between = ranked(link, unready=("pair",), hosts=("node3", "node4"), links=(("node3", "node4"),))
    assert (between.id, between.named) == (illness, True)
    assert between.summary.startswith("node3 and node4 ")


def test_a_name_that_leads_astray_comes_before_the_traffic_that_fails_by_it() -> None:
    traffic = BadNode(("E4",), "pairs", None, "node3", "refused", "node3: refused", ("E5",))

    assert (
        ranked(failed("host.dns"), traffic, unready=("host.dns", "pair")).id
        == "hostname-resolution"
    )
    assert (
        ranked(failed("net.ifname"), traffic, unready=("net.ifname", "pair")).id
        == "wrong-network-interface"
    )


def test_a_node_without_an_answer_is_one_that_does_not_answer() -> None:
    silent = SilentNode(
        ("E4",), "checks", None, "node3", "node3 gave no answer within 12 s", late=True
    )

    first = ranked(silent, unready=("node.look",))
    assert (first.id, first.named, first.hosts) == ("node-not-answering", True, ("node3",))


def test_what_fails_on_another_node_or_in_another_group_says_nothing() -> None:
    first = ranked(
        failed("shm.size", host="node2"), failed("lim.memlock"), unready=("lim.memlock",)
    )

    assert first.id == "memlock-limit"
    assert ranked(failed("shm.size", host="node2"), unready=("shm.size",)).id == "unknown"


def test_a_check_of_no_known_illness_is_told_with_its_own_advice() -> None:
    first = ranked(failed("lim.cgdev"), unready=("lim.cgdev",))

    assert (first.id, first.fixes[0].steps) == ("unknown", ("mend it",))


def test_what_all_nodes_share_leaves_nobody_out() -> None:
    first = ranked(
        *(failed("shm.size", host=host) for host in NODES), unready=("shm.size",), hosts=NODES
    )

    assert (first.id, first.hosts) == ("shm-exhausted", NODES)
    assert not any(
        "--exclude" in step or "drain" in step for one in first.fixes for step in one.steps
    )


def test_ranks_over_several_nodes_exclude_nobody_and_what_the_budget_cut_short_is_no_hang() -> None:
    over = SuspectGroup(
        "gloo_control@4",
        "gloo_control",
        (0, 1),
        "stuck-inside",
        "ranks 0 and 1 stand still",
        "hang",
        hosts=("node2",),
        world_size=4,
    )
    alone = SuspectGroup(
        "host@node3", "host", (), "failed-first", "a limit", "check", hosts=("node3",)
    )
    small = SuspectGroup(
        "checks",
        "ready",
        (),
        "failed-first",
        "/dev/shm is small",
        "check",
        hosts=("node4",),
        unready=("shm.size",),
    )
    rung = Rung(
        ("E5",),
        "gloo_control@4",
        None,
        60,
        "gloo_control",
        nproc=4,
        outcome="timed_out",
        deadline_s=3.7,
        hosts=NODES,
    )

    assert to_leave_out((over,), NODES) == ((), True)
    assert to_leave_out((small, over), NODES) == (("node4",), False)
    assert to_leave_out((alone,), NODES) == (("node3",), False)
    assert of_rungs(Facts([PLAN, rung]), (over, alone)) == [alone]
    assert of_rungs(Facts([PLAN, replace(rung, deadline_s=30.0)]), (over,)) == [over]


def test_of_a_batch_script_the_script_is_told_and_no_node() -> None:
    plan = replace(PLAN, by="sbatch", nodes=("login",))
    group = SuspectGroup(
        "checks",
        "ready",
        (),
        "failed-first",
        "it does not fit",
        "check",
        hosts=("login",),
        unready=("plan.tasks",),
    )

    first = rank_group(
        Facts([plan, failed("plan.tasks", "login")]), group, causes.built(), load_priors()
    ).placed[0]

    assert (first.id, first.fixes[0].title, first.fixes[0].verify) == (
        "launcher-args",
        "Correct it in the batch script",
        "trainprobe ready --sbatch <SCRIPT>",
    )
    assert first.summary.startswith("The batch script has a launch that does not fit")
