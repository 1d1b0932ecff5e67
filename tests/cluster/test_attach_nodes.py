"""`attach --slurm` and `--hosts` on a real SLURM: a job that hangs over three hosts, one of
which then stops answering.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.torch
TRAINING = Path(__file__).with_name("train.py")
SICK = 4  # of six ranks on three hosts: the first on node3


@pytest.fixture(scope="module")
def hung(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The id of a job whose rank 4 has hung for more than five seconds."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("job")
    output = folder / "output.txt"
    command = f"srun -N3 -n6 {sys.executable} {TRAINING} {folder} {SICK}"
    script = f"#!/bin/sh\nexport MASTER={cluster[1].address} OMP_NUM_THREADS=1\n{command}\n"
    job = cluster.slurm.job(
        script, "-N3", "--nodelist=node[1-3]", "--ntasks-per-node=2", f"--output={output}"
    )
    until = time.monotonic() + 90
    while not (output.exists() and "rank 0 step 2" in output.read_text()):
        if time.monotonic() > until:
            pytest.fail(
                "the job did not come to step 2:"
                f" {output.read_text()[-500:] if output.exists() else 'no output'}"
            )
        time.sleep(0.2)
    time.sleep(5.2)  # a look takes some seconds more, and a hang shows after five
    yield job
    cluster.slurm.run("scancel", "--signal=KILL", str(job))


def attach(cluster: Cluster, folder: Path, *words: str) -> dict[str, Any]:
    """The report of one attach from this machine, which is outside of the job."""
    told = folder / "report.json"
    env = {**cluster.slurm.env, "TRAINPROBE_SSH": f"ssh -F {cluster.ssh_config}"}
    argv = [
        sys.executable,
        "-m",
        "trainprobe",
        "attach",
        *words,
        "--case",
        str(folder / "case"),
        "--json",
        str(told),
        "--quiet",
    ]
    done = subprocess.run(
        argv,
        env=env,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (1, "")
    found: dict[str, Any] = json.loads(told.read_text())
    return found


@pytest.mark.parametrize("way", ["slurm", "ssh"])
def test_a_job_over_three_hosts_is_told_from_outside(
    cluster: Cluster, hung: int, tmp_path: Path, way: str
) -> None:
    report = attach(
        cluster,
        tmp_path,
        *(("--slurm", str(hung)) if way == "slurm" else ("--hosts", "node1,node2,node3")),
    )

    ranks = {row["rank"]: row["host"] for row in report["world"]["ranks"]}
    assert ranks == {0: "node1", 1: "node1", 2: "node2", 3: "node2", 4: "node3", 5: "node3"}
    first = report["causes"][0]
    assert (report["verdict"], first["id"], first["named"], first["ranks"], first["hosts"]) == (
        "hung",
        "file-lock-held",
        True,
        [SICK],
        ["node3"],
    )


def test_a_host_that_stops_is_named_with_the_ranks_that_must_be_there(
    cluster: Cluster, hung: int, tmp_path: Path
) -> None:
    cluster[3].stop()
    report = attach(cluster, tmp_path, "--slurm", str(hung))

    first = report["causes"][0]
    assert (report["verdict"], first["id"], first["ranks"], first["hosts"]) == (
        "hung",
        "node-not-answering",
        [4, 5],
        ["node3"],
    )


def test_a_job_that_is_over_is_said_to_be(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.slurm.job("#!/bin/sh\nexit 0\n")
    until = time.monotonic() + 10
    while (
        "COMPLETED" not in cluster.slurm.run("scontrol", "show", "job", str(job)).stdout
        and time.monotonic() < until
    ):
        time.sleep(0.1)
    argv = [
        sys.executable,
        "-m",
        "trainprobe",
        "attach",
        "--slurm",
        str(job),
        "--case",
        str(tmp_path / "case"),
    ]
    env = {**os.environ, **cluster.slurm.env}
    done = subprocess.run(
        argv,
        env=env,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, f"Job {job} is COMPLETED" in done.stderr) == (2, True)
