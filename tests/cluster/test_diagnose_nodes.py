"""`diagnose --nodes` on real hosts: inside an allocation of SLURM and over ssh, well and with
faults of ranks, hosts and links.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.torch
TRAINING = str(Path(__file__).with_name("climbed.py"))
ROOT = Path(__file__).parents[2]


@pytest.fixture
def climb(cluster: Cluster, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Climb from this machine and return the report. With `allocate` it is done inside an
    allocation of so many nodes; `meanwhile` runs beside it.
    """
    pytest.importorskip("torch")

    def run(
        *words: str,
        allocate: int = 0,
        meanwhile: Callable[[], None] | None = None,
        timeout_s: float = 240.0,
    ) -> dict[str, Any]:
        told = tmp_path / "report.json"
        env = {
            **cluster.slurm.env,
            "TRAINPROBE_SSH": f"ssh -F {cluster.ssh_config}",
            "OMP_NUM_THREADS": "1",
        }
        inside = ["salloc", "--quiet", f"--nodes={allocate}"] if allocate else []
        argv = [
            *inside,
            sys.executable,
            "-m",
            "trainprobe",
            "diagnose",
            "--case",
            str(tmp_path / "case"),
            "--json",
            str(told),
            "--quiet",
            *words,
        ]
        child = subprocess.Popen(
            argv, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            if meanwhile is not None:
                meanwhile()
            _, errors = child.communicate(timeout=timeout_s)
        finally:
            child.kill()
        assert (child.returncode in (0, 1), errors) == (True, "")
        found: dict[str, Any] = json.loads(told.read_text())
        return found

    return run


def evidence_of(tmp_path: Path, cell: str) -> bool:
    """Whether the case knows a step of this cell: its ranks are under way."""
    path = tmp_path / "case" / "evidence.jsonl"
    return path.exists() and any(
        json.loads(line)["cell"] == cell for line in path.read_text().splitlines()
    )


def left_over(cluster: Cluster) -> list[str]:
    """What still runs of ours on the hosts, some seconds later."""
    for _ in range(50):
        found = []
        for host in cluster.hosts:
            for pid in host.pids():
                words = Path(f"/proc/{pid}/cmdline")
                text = (
                    words.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                    if words.exists()
                    else ""
                )
                if "climb-here" in text or "climbed.py" in text or "/probes/" in text:
                    found.append(text)
        if not found:
            return []
        time.sleep(0.2)
    return found


def first(report: dict[str, Any]) -> tuple[Any, ...]:
    cause = report["causes"][0]
    return report["verdict"], cause["id"], cause["named"], cause["ranks"], cause["hosts"]


def test_a_rank_that_raises_on_the_second_node_is_named_with_its_host(
    cluster: Cluster, climb: Callable[..., dict[str, Any]]
) -> None:
    report = climb(
        "--nodes",
        "all",
        "--nproc",
        "1",
        "--only",
        "host,user_script",
        "--skip",
        "lint",
        "--",
        TRAINING,
        "raise",
        "1",
        "8",
        allocate=2,
    )

    assert first(report) == ("crashed", "user-exception", True, [1], ["node2"])
    assert [(row["rank"], row["host"]) for row in report["world"]["ranks"]] == [
        (0, "node1"),
        (1, "node2"),
    ]
    cells = {
        row["cell"]: (row["outcome"], row.get("hosts"))
        for row in report["ladder"]
        if row["probe"] in ("host", "user_script")
    }
    assert cells == {
        "host@node1": ("passed", ["node1"]),
        "host@node2": ("passed", ["node2"]),
        "user_script@1": ("passed", ["node1"]),
        "user_script@2": ("crashed", ["node1", "node2"]),
    }
    assert left_over(cluster) == []


@pytest.mark.soak
def test_a_sound_cluster_is_healthy_over_ssh(
    cluster: Cluster, climb: Callable[..., dict[str, Any]]
) -> None:
    report = climb("--nodes", "node[1-3]", "--nproc", "1", "--", TRAINING, "none", "0", "20")

    assert (report["verdict"], report["causes"], report["conclusive"]) == ("healthy", [], True)
    sizes = [row["nproc"] for row in report["ladder"] if row["probe"] == "user_script"]
    assert (sizes, report["world"]["size"]) == ([1, 2, 3], 3)
    assert left_over(cluster) == []


@pytest.mark.soak
def test_a_rank_that_hangs_on_the_third_node_is_named_with_its_host(
    cluster: Cluster, climb: Callable[..., dict[str, Any]]
) -> None:
    report = climb(
        "--nodes",
        "all",
        "--nproc",
        "2",
        "--only",
        "user_script",
        "--",
        TRAINING,
        "hang",
        "4",
        "20",
        allocate=3,
    )

    assert first(report) == ("hung", "rank-stuck", True, [4], ["node3"])
    assert {row["rank"]: row["host"] for row in report["world"]["ranks"]} == {
        0: "node1",
        1: "node1",
        2: "node2",
        3: "node2",
        4: "node3",
        5: "node3",
    }
    assert left_over(cluster) == []


@pytest.mark.soak
@pytest.mark.parametrize("way", ["slurm", "ssh"])
def test_a_host_that_freezes_in_the_middle_is_named(
    cluster: Cluster, climb: Callable[..., dict[str, Any]], tmp_path: Path, way: str
) -> None:
    def freeze() -> None:
        until = time.monotonic() + 90
        while not evidence_of(tmp_path, "user_script@1"):
            assert time.monotonic() < until
            time.sleep(0.1)
        cluster[2].stop()

    nodes = ("all",) if way == "slurm" else ("node1,node2",)
    report = climb(
        "--nodes",
        *nodes,
        "--nproc",
        "1",
        "--only",
        "user_script",
        "--",
        TRAINING,
        "none",
        "0",
        "2000",
        allocate=2 * (way == "slurm"),
        meanwhile=freeze,
    )

    assert first(report) == ("hung", "node-not-answering", True, [1], ["node2"])
    cluster[2].resume()
    assert left_over(cluster) == []


@pytest.mark.soak
def test_a_host_that_does_not_answer_from_the_beginning_is_named_at_once(
    cluster: Cluster, climb: Callable[..., dict[str, Any]]
) -> None:
    cluster[2].stop()
    report = climb("--nodes", "node[1-3]", "--nproc", "1", "--only", "host,gloo_control")

    assert first(report)[1:3] == ("node-not-answering", True)
    assert report["causes"][0]["hosts"] == ["node2"]
    outcomes = {row["cell"]: row["outcome"] for row in report["ladder"]}
    assert (outcomes["host@node1"], outcomes["host@node2"], outcomes["host@node3"]) == (
        "passed",
        "timed_out",
        "passed",
    )


@pytest.mark.soak
@pytest.mark.parametrize(("ports", "verdict"), [("1024-32767", "crashed"), ("32768-65535", "hung")])
def test_blocked_ports_between_two_nodes_are_told(
    cluster: Cluster, climb: Callable[..., dict[str, Any]], ports: str, verdict: str
) -> None:
    """The port of the rendezvous, and those that the data goes through."""
    cluster[1].takes_no_new(ports)
    report = climb("--nodes", "node[1-2]", "--nproc", "1", "--only", "gloo_control")

    assert (report["verdict"], report["causes"][0]["id"], report["causes"][0]["named"]) == (
        verdict,
        "firewall-or-route",
        True,
    )


@pytest.mark.soak
def test_a_launcher_of_the_user_runs_once_on_each_node(
    cluster: Cluster, climb: Callable[..., dict[str, Any]]
) -> None:
    command = (
        "torchrun",
        "--nnodes",
        "{nodes}",
        "--nproc-per-node",
        "{ranks}",
        "--node-rank",
        "{node_rank}",
        "--master-addr",
        "{master_addr}",
    )
    report = climb(
        "--nodes",
        "all",
        "--nproc",
        "2",
        "--only",
        "user_script",
        "--",
        *command,
        "--master-port",
        "{master_port}",
        TRAINING,
        "raise",
        "3",
        "8",
        allocate=2,
    )

    assert first(report) == ("crashed", "user-exception", True, [3], ["node2"])
    assert left_over(cluster) == []
