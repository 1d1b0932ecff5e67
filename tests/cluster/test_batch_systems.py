"""`trainprobe ready` in jobs of other batch systems: their environment and stand-ins for their
starters, which reach the hosts by a real ssh; and real ssh where there is no starter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import Cluster
from tests.conftest import ROOT

# OpenPBS' carries neither stdin nor stdout; LSF's takes a line for a shell.
PBSDSH = """#!/bin/sh
host=$(sed -n "$(($2 + 1))p" "$PBS_NODEFILE"); shift 3
exec {python} -c 'import shlex, subprocess, sys
sys.exit(subprocess.run([*sys.argv[1].split(), sys.argv[2], shlex.join(sys.argv[3:])],
stdin=subprocess.DEVNULL, stdout=2).returncode)' "$TRAINPROBE_SSH" "$host" "$@" 2>>{folder}/job.out
"""
BLAUNCH = '#!/bin/sh\n[ "$1" != -n ] || shift\nexec $TRAINPROBE_SSH "$1" "$2"\n'


def ready(
    cluster: Cluster, folder: Path, job: Mapping[str, str], *words: str
) -> tuple[int, Mapping[str, Any], str]:
    """Type it on node1, which has these variables; return code, report and output."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    kept["PATH"] = f"{folder}:{kept['PATH']}"
    env = {**kept, "TRAINPROBE_SSH": f"ssh -F {cluster.ssh_config}", "PYTHONPATH": str(ROOT), **job}
    words = ("ready", "--case", str(folder / "case"), "--json", str(folder / "report"), *words)
    done = subprocess.run(
        cluster[1].argv(sys.executable, "-m", "trainprobe", *words),
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    report = json.loads((folder / "report").read_text(encoding="utf-8"))
    return done.returncode, report, done.stdout + done.stderr


@pytest.mark.root
@pytest.mark.parametrize(
    "by", ["pbs", *(pytest.param(by, marks=pytest.mark.soak) for by in ("lsf", "ssh"))]
)
def test_all_nodes_of_the_job_are_looked_at(by: str, cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("node1\nnode1\nnode2\nnode3\n", encoding="ascii")
    for name, text in {"pbsdsh": PBSDSH, "blaunch": BLAUNCH}.items():
        if by != "ssh":
            (tmp_path / name).write_text(text.format(python=sys.executable, folder=tmp_path))
            (tmp_path / name).chmod(0o755)
    job = (
        {"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "node1 2 node2 1 node3 1"}
        if by == "lsf"
        else {"PBS_JOBID": "7.server", "PBS_NODEFILE": str(tmp_path / "nodes")}
    )
    cluster[3].run("mount", "-o", "remount,size=512k", "/dev/shm")
    try:
        code, report, said = ready(cluster, tmp_path, job, "--timeout", "22")
    finally:
        cluster[3].run("mount", "-o", "remount,size=256m", "/dev/shm")
    assert report["readiness"]["nodes"] == ["node1", "node2", "node3"], said
    assert (code, report["readiness"]["exclude"]) == (10, ["node3"]), said
    line = {"lsf": "-R \"select[hname!='node3']\""}.get(by, "node3")
    assert report["readiness"]["exclude_line"] == line


@pytest.mark.root
@pytest.mark.soak
def test_one_of_several_nodes_alone_is_not_healthy(cluster: Cluster, tmp_path: Path) -> None:
    lost = {"PBS_JOBID": "7.server", "PBS_NODEFILE": "/no/such"}
    code, report, said = ready(cluster, tmp_path, lost)
    assert (code, report["verdict"], "PBS_NODEFILE /no/such cannot be read" in said) == (
        3,
        "undetermined",
        True,
    )
