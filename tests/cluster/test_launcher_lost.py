"""torchrun over two hosts, of which one loses its agent: the ranks of that host go on alone."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.cluster.conftest import Cluster
from tests.cluster.test_attach_nodes import attach

pytestmark = [pytest.mark.torch, pytest.mark.soak]
TRAINING = """
import sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
while True:
    dist.all_reduce(torch.ones(4))
    open(f"{sys.argv[1]}/{dist.get_rank()}", "a").write("x")
    time.sleep(0.05)
"""


def test_one_hosts_agent_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(TRAINING, encoding="utf-8")
    agents = [
        cluster[number].start(
            *(sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"),
            *(f"--node-rank={number - 1}", f"--master-addr={cluster[1].address}"),
            *("--master-port=29555", str(script), str(tmp_path)),
            log="agent.out",
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for number in (1, 2)
    ]
    steps = [tmp_path / str(rank) for rank in (0, 1)]
    until = time.monotonic() + 120
    while not all(step.exists() and step.stat().st_size > 20 for step in steps):
        assert time.monotonic() < until, "the ranks did not come to step 20"
        time.sleep(0.2)
    own = set(cluster[2].pids())
    (agent,) = [pid for pid in own if b"torch.distributed.run" in command_of(pid)]
    os.kill(agent, signal.SIGKILL)
    try:
        report = attach(cluster, tmp_path, "--hosts", "node1,node2")
    finally:
        for host in (cluster[1], cluster[2]):
            for pid in host.pids():
                if str(script).encode() in command_of(pid):
                    os.kill(pid, signal.SIGKILL)
        for each in agents:
            each.wait(20)

    first = report["causes"][0]
    assert (report["verdict"], first["id"], first["named"], first["hosts"]) == (
        *("at-risk", "launcher-lost"),
        *(True, ["node2"]),
    )


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
