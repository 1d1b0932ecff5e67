"""A hung job on hosts that do not have the tool: it goes along as one file, into hosts over ssh and
into pods by kubectl, where an older Python runs it.

There is no Kubernetes here: a program called kubectl stands in for it, which prints pods as kubectl
does and enters the hosts of the cluster.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import Cluster

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("hung")]
REPOSITORY = Path(__file__).parents[2]
TRAINING = Path(__file__).with_name("train.py")
SICK = 2  # of three ranks on three hosts: the one on node3
STANDS_IN = """#!{python}
import os, sys
words = sys.argv[1:]
if words[0] == "get":
    assert words[words.index("--selector") + 1] == "job-name=train", words
    sys.stdout.write(open({pods!r}).read())
    raise SystemExit(0)
assert words[0] == "exec" and "--stdin" in words, words
pod, argv = next(word for word in words if word.startswith("train-")), words[words.index("--") + 1:]
pid = {pids!r}[pod]
os.execvp("nsenter", ["nsenter", "--target", str(pid), "--net", "--uts", "--mount", "--pid", "--", "env", "-i", "PATH=/usr/bin:/bin", *argv])
"""


def old_python() -> str:
    """A Python 3.9 of this machine, or a reason to skip."""
    found = next(
        iter(sorted(Path.home().glob(".pyenv/versions/3.9.*/bin/python3.9"))), None
    ) or shutil.which("python3.9")
    if found is None:
        pytest.skip("no Python 3.9 on this machine")
    return str(found)


@pytest.fixture(scope="module")
def hung(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A job of three ranks, one on each of three hosts, the last of which has hung for more than
    five seconds; and the hosts do not see the tool's folder.
    """
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("job")
    program = folder / "train.py"
    shutil.copy(TRAINING, program)
    ranks = []
    for place, host in enumerate(cluster.hosts[:3]):
        told = {
            "MASTER": cluster[1].address,
            "OMP_NUM_THREADS": "1",
            "SLURM_PROCID": str(place),
            "SLURM_NTASKS": "3",
            "SLURM_LOCALID": "0",
        }
        env = {
            **os.environ,
            **told,
            "SLURM_JOB_ID": "77",
            "SLURM_STEP_ID": "0",
            "SLURM_NNODES": "3",
            "SLURM_NODEID": str(place),
        }
        ranks += [
            host.start(
                sys.executable, str(program), str(folder), str(SICK), log="rank.out", env=env
            )
        ]
    until = time.monotonic() + 90
    while "rank 0 step 2" not in (cluster[1].folder / "rank.out").read_text():
        if time.monotonic() > until:
            pytest.fail(
                "the job did not come to step 2:"
                f" {(cluster[1].folder / 'rank.out').read_text()[-500:]}"
            )
        time.sleep(0.2)
    for host in cluster.hosts[:3]:
        hidden = host.run("mount", "-t", "tmpfs", "none", str(REPOSITORY / "trainprobe"))
        assert hidden.returncode == 0, hidden.stderr
    time.sleep(5.2)  # a hang shows after five seconds
    yield folder
    for host, rank in zip(cluster.hosts[:3], ranks, strict=True):
        host.run("umount", str(REPOSITORY / "trainprobe"))
        (trains,) = Path(f"/proc/{rank.pid}/task/{rank.pid}/children").read_text().split()
        os.kill(int(trains), signal.SIGKILL)
        rank.wait(10)


def attach(folder: Path, *words: str, **environ: str) -> dict[str, Any]:
    told = folder / "report.json"
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
        env={**os.environ, **environ},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (1, "")
    found: dict[str, Any] = json.loads(told.read_text())
    return found


def blamed(report: dict[str, Any]) -> tuple[object, ...]:
    first = report["causes"][0]
    return (report["verdict"], first["id"], first["named"], first["ranks"], first["hosts"])


def left_behind() -> list[str]:
    """What a bundle has left in the folders for temporary files, which the hosts share."""
    return [path.name for path in Path("/tmp").glob("trainprobe-????????/bin")]


@pytest.mark.soak
def test_the_tool_goes_along_over_ssh(cluster: Cluster, tmp_path: Path) -> None:
    assert cluster[1].run("ls", str(REPOSITORY / "trainprobe")).stdout == ""
    report = attach(
        tmp_path,
        "--hosts",
        "node[1-3]",
        "--bundle",
        "--node-python",
        old_python(),
        TRAINPROBE_SSH=f"ssh -F {cluster.ssh_config}",
    )

    assert blamed(report) == ("hung", "file-lock-held", True, [SICK], ["node3"])
    assert {row["rank"]: row["host"] for row in report["world"]["ranks"]} == {
        0: "node1",
        1: "node2",
        2: "node3",
    }
    assert left_behind() == []


def test_pods_are_entered_by_kubectl_and_one_that_does_not_run_is_named(
    cluster: Cluster, tmp_path: Path
) -> None:
    names = {f"train-{place}": cluster[place + 1] for place in range(3)}
    running = {
        "phase": "Running",
        "containerStatuses": [{"name": "main", "state": {"running": {}}}],
    }
    waits = {
        "phase": "Pending",
        "containerStatuses": [
            {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
        ],
    }
    rows = [
        {
            "metadata": {"name": name, "namespace": "ml"},
            "spec": {"nodeName": "worker", "containers": [{"name": "main"}]},
            "status": status,
        }
        for name, status in (*((name, running) for name in names), ("train-3", waits))
    ]
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "items": rows}))
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(
        STANDS_IN.format(
            python=sys.executable,
            pods=str(tmp_path / "pods.json"),
            pids={name: host.pid for name, host in names.items()},
        )
    )
    program.chmod(0o755)
    report = attach(
        tmp_path,
        "--kubectl",
        "job-name=train",
        "--node-python",
        old_python(),
        PATH=f"{program.parent}:{os.environ['PATH']}",
    )

    assert blamed(report) == ("hung", "file-lock-held", True, [SICK], ["train-2"])
    assert {row["rank"]: row["host"] for row in report["world"]["ranks"]} == {
        0: "train-0",
        1: "train-1",
        2: "train-2",
    }
    assert (
        "train-3 cannot be entered: it is Pending (ImagePullBackOff)"
        in (tmp_path / "case" / "report.txt").read_text()
    )
    assert left_behind() == []


@pytest.mark.soak
def test_an_older_python_is_told_which_one_is_needed(cluster: Cluster, tmp_path: Path) -> None:
    found = next(iter(sorted(Path.home().glob(".pyenv/versions/3.8.*/bin/python3.8"))), None)
    if found is None:
        pytest.skip("no Python 3.8 on this machine")
    argv = [
        sys.executable,
        "-m",
        "trainprobe",
        "attach",
        "--hosts",
        "node1",
        "--bundle",
        "--node-python",
        str(found),
        "--case",
        str(tmp_path / "case"),
    ]
    env = {**os.environ, "TRAINPROBE_SSH": f"ssh -F {cluster.ssh_config}"}
    done = subprocess.run(
        argv, env=env, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, "Python 3.9 or newer is needed; this is 3.8" in done.stderr) == (
        2,
        True,
    )
