"""Many hosts over OpenSSH by ClusterShell's tree, for real: node1 is the gateway of the others,
one of which is silent.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.cluster.conftest import Cluster
from trainprobe.nodes.transports import ssh_way
from trainprobe.nodes.tree import asked_by_tree

pytestmark = pytest.mark.soak


def test_hosts_below_a_gateway_are_asked_and_a_silent_one_holds_up_nobody(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("clush") is None:
        pytest.skip("ClusterShell is not installed")
    (tmp_path / "topology.conf").write_text(
        f"[routes]\n{os.uname().nodename}: node1\nnode1: node[2-4]\n", encoding="ascii"
    )
    monkeypatch.setenv("CLUSTERSHELL_CFGDIR", str(tmp_path))
    monkeypatch.setenv("CLUSTERSHELL_GW_PYTHON_EXECUTABLE", sys.executable)
    monkeypatch.setenv("TRAINPROBE_SSH", f"ssh -F {cluster.ssh_config}")
    monkeypatch.setattr("trainprobe.nodes.tree.MANY", 2)
    nodes = ssh_way(("node2", "node3", "node4")).nodes(("look-here", "--slurm-job", "999999999"))
    cluster[3].stop()
    began = time.monotonic()
    found = asked_by_tree(nodes, 25.0, lambda: False)

    assert {
        name: b'"says": "end"' in ran.stdout for name, ran in found.items() if name != "node3"
    } == {"node2": True, "node4": True}
    assert (
        "node3" not in found or found["node3"].ended.how == "timed_out",
        time.monotonic() - began < 35,
    ) == (True, True)


def test_without_a_topology_or_for_few_hosts_there_is_no_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTERSHELL_CFGDIR", str(tmp_path))
    assert (
        asked_by_tree(ssh_way(("node1", "node2")).nodes(("look-here",)), 5.0, lambda: False) == {}
    )
