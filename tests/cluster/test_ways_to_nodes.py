"""Probes on several real hosts at once, from inside an allocation and over ssh; nothing of them
stays when whoever asked is gone.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.conftest import Cluster
from trainprobe.nodes.remote_probes import probe_on
from trainprobe.nodes.transports import ssh_way
from trainprobe.system.interruption import Interruption

REPOSITORY = Path(__file__).parents[2]
ASKS = """
import json, os, sys
sys.path.insert(0, {repository!r})
from trainprobe.nodes.remote_probes import probe_on
from trainprobe.nodes.transports import ssh_way, way_in_allocation
from trainprobe.system.interruption import Interruption
names = {names!r}
way = ssh_way(names) if names else way_in_allocation()
with Interruption() as interruption:
    found = probe_on(way, {{name: {environ!r} for name in way.names}}, {program!r}, {timeout_s!r}, interruption)
print(json.dumps({{name: [one.answer[0], one.ended.how if one.ended else one.says] for name, one in found.items()}}))
"""
ALONE = {
    "RANK": "1",
    "WORLD_SIZE": "2",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29123",
}  # nobody is there to meet


def asking(
    folder: Path,
    names: tuple[str, ...] | None,
    program: str,
    timeout_s: float,
    environ: dict[str, str] | None = None,
) -> Path:
    script = folder / f"asks-{program}.py"
    script.write_text(
        ASKS.format(
            repository=str(REPOSITORY),
            names=names,
            environ=environ or {},
            program=program,
            timeout_s=timeout_s,
        ),
        encoding="utf-8",
    )
    return script


def eventually(true: Callable[[], bool], within_s: float) -> bool:
    until = time.monotonic() + within_s
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def running(cluster: Cluster, program: str) -> list[str]:
    """The command lines of `program` on all hosts."""
    found = []
    for host in cluster.hosts:
        for pid in host.pids():
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if f"{program}.py" in line and "asks-" not in line:
                found.append(line)
    return found


@pytest.mark.parametrize("inside", [pytest.param("batch", marks=pytest.mark.soak), "step"])
def test_a_probe_runs_on_all_nodes_of_the_allocation_that_we_are_in(
    cluster: Cluster, tmp_path: Path, inside: str
) -> None:
    output = tmp_path / "output.txt"
    script = asking(tmp_path, None, "host", 15.0)
    step = (
        "srun -N1 -n1 --label --cpu-bind=none " if inside == "step" else ""
    )  # an outer step's label must not be ours
    cluster.slurm.job(
        f"#!/bin/sh\n{step}{sys.executable} {script}\n",
        "-N3",
        "--nodelist=node[1-3]",
        "--ntasks-per-node=2",
        "--cpus-per-task=2",
        f"--output={output}",
    )

    assert eventually(lambda: output.exists() and output.read_text().count("}") == 1, 60), (
        output.read_text() if output.exists() else "no output"
    )
    said = output.read_text()
    assert json.loads(said[said.index("{") :]) == {
        name: ["yes", "exited"] for name in ("node1", "node2", "node3")
    }


@pytest.mark.soak
def test_a_silent_host_is_said_to_be_and_the_others_have_run_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINPROBE_SSH", f"ssh -F {cluster.ssh_config}")
    cluster[2].stop()
    began = time.monotonic()
    found = probe_on(
        ssh_way(("node1", "node2", "node3")),
        {"node1": {}, "node2": {}, "node3": {}},
        "host",
        3.0,
        Interruption(),
        way_s=5.0,
    )

    assert {name: one.answer[0] for name, one in found.items()} == {
        "node1": "yes",
        "node2": "",
        "node3": "yes",
    }
    assert (
        found["node2"].ended,
        found["node2"].says.startswith("node2 did not answer within"),
        time.monotonic() - began < 15,
    ) == (None, True, True)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("way", "how"),
    [
        ("slurm", "killed"),
        *(
            pytest.param(way, how, marks=pytest.mark.soak)
            for way, how in itertools.product(("slurm", "ssh"), ("killed", "interrupted", "late"))
            if (way, how) != ("slurm", "killed")
        ),
    ],
)
def test_nothing_stays_on_the_nodes_when_nobody_waits_any_more(
    cluster: Cluster, tmp_path: Path, way: str, how: str
) -> None:
    pytest.importorskip("torch")
    names = ("node1", "node2")
    script = asking(
        tmp_path,
        names if way == "ssh" else None,
        "gloo_control",
        3.0 if how == "late" else 90.0,
        ALONE,
    )
    if way == "ssh":
        env = {**os.environ, "TRAINPROBE_SSH": f"ssh -F {cluster.ssh_config}"}
        asks = subprocess.Popen(
            [sys.executable, str(script)], env=env, stdout=subprocess.PIPE, text=True
        )
    else:
        asks = subprocess.Popen(
            ["salloc", "-Q", "-N2", sys.executable, str(script)],
            env=cluster.slurm.env,
            stdout=subprocess.PIPE,
            text=True,
        )
    with asks:
        assert eventually(lambda: len(running(cluster, "gloo_control")) >= 2, 30)
        if how != "late":
            own = (
                asks.pid
                if way == "ssh"
                else int(Path(f"/proc/{asks.pid}/task/{asks.pid}/children").read_text().split()[0])
            )
            os.kill(own, signal.SIGKILL if how == "killed" else signal.SIGINT)
        gone = eventually(lambda: not running(cluster, "gloo_control"), 10)
        asks.kill()
    assert gone, running(cluster, "gloo_control")
