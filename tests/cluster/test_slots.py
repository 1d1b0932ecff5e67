"""The published examples as Prolog=, Epilog=, TaskProlog= and HealthCheckProgram= of a real
SLURM.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cluster import hosts as made_hosts
from tests.cluster import sites
from tests.cluster import slurm as made_slurm
from tests.cluster.conftest import lane
from tests.cluster.hosts import Host
from tests.cluster.slurm import Slurm

DEAD_MOUNT = Path(__file__).parents[1] / "programs" / "dead_mount.py"


@pytest.fixture
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[Host]]:
    """New ones for each test: a slurmd ends with its host."""
    reason = made_hosts.why_not() or made_slurm.why_not()
    if reason:
        pytest.skip(f"no cluster on this machine: {reason}")
    with made_hosts.hosts(2, tmp_path_factory.mktemp("hosts"), lane=lane(1)) as found:
        yield found


def state(slurm: Slurm, node: str) -> tuple[str, str]:
    """The state of a node and the reason that stands there."""
    said = slurm.run(
        "sinfo", "--noheader", "--Node", "--nodes", node, "--format=%T|%E"
    ).stdout.strip()
    name, _, reason = said.partition("|")
    return name, reason


def until(slurm: Slurm, node: str, wanted: str, within_s: float = 20.0) -> tuple[str, str]:
    end = time.monotonic() + within_s
    while time.monotonic() < end and not state(slurm, node)[0].startswith(wanted):
        time.sleep(0.2)
    return state(slurm, node)


def test_before_and_after_a_job(nodes: Sequence[Host], tmp_path: Path) -> None:
    """A healthy node runs the job, a node with a fault is drained, one that cannot be looked at
    is not; SLURM is never asked, nothing stays.
    """
    command, log = sites.installed(tmp_path), tmp_path / "log"
    scripts = {
        name: sites.example(f"{name}.sh", tmp_path, TRAINPROBE=command, LOG=log)
        for name in ("prolog", "epilog")
    }
    task = sites.example("taskprolog.sh", tmp_path, TRAINPROBE=command)
    more = f"Prolog={scripts['prolog']}\nEpilog={scripts['epilog']}\nTaskProlog={task}\nPrologFlags=Alloc\n"
    data = tmp_path / "data"
    data.mkdir()
    with (
        made_slurm.slurm(nodes, tmp_path / "slurm", more=more) as slurm,
        sites.ruled(nodes, tmp_path, f"paths: [{data}]\n"),
    ):
        calls = sites.poisoned(nodes, tmp_path)
        try:
            done = slurm.run(
                "srun", "--nodes=1", "--nodelist=node1", "--ntasks=2", "echo", "trained"
            )
            assert (done.returncode, done.stdout.count("trained")) == (0, 2), log.read_text()
            assert [
                line
                for line in done.stdout.splitlines()
                if line != "trained" and not line.startswith("trainprobe: ")
            ] == []
            assert until(slurm, "node1", "idle")[0] == "idle"

            sites.without_its_mount(nodes[1], tmp_path, data)
            sent = subprocess.Popen(
                ["srun", "--nodelist=node2", "echo", "never"],
                env=slurm.env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            assert until(slurm, "node2", "drain")[1] == "Prolog error", log.read_text()
            assert (
                f"fs.mounts (blocker, admin): Mounts: {data} should lie on {data} (nfs4), which is"
                " not mounted" in log.read_text()
            )
            sites.with_its_mount(nodes[1])
            slurm.run("scancel", "--state=PENDING")
            assert sent.communicate(timeout=20)[0] == ""

            command.write_text("#!/bin/sh\nexit 70\n", encoding="utf-8")
            assert slurm.run("srun", "--nodelist=node1", "echo", "trained").stdout == "trained\n"
            assert until(slurm, "node2", "drained") == (
                "drained",
                "Prolog error",
            )  # it is healthy again; nobody but an administrator undoes that
        finally:
            sites.unpoisoned(nodes)
        slots = [line.split()[2] for line in (tmp_path / "runs").read_text().splitlines()]
        assert (slots[0], {"prolog", "taskprolog", "epilog"} <= set(slots), calls.read_text()) == (
            "prolog",
            True,
            "",
        )
        assert [sites.of_ours(host) for host in nodes] == [[], []]


def test_a_check_that_blocks_in_the_kernel_holds_no_prolog(
    nodes: Sequence[Host], tmp_path: Path
) -> None:
    """It is over by its deadline with a child that cannot be killed, and the next one starts
    nothing while that lives: that is no fault of the node.
    """
    dead = tmp_path / "dead"
    dead.mkdir()
    argv = [
        str(
            sites.example(
                "prolog.sh", tmp_path, TRAINPROBE=sites.installed(tmp_path), LOG=tmp_path / "log"
            )
        )
    ]
    nodes[0].start(sys.executable, str(DEAD_MOUNT), str(dead), "asleep", log="dead_mount.out")
    try:
        end = time.monotonic() + 10
        while (
            b"ready" not in (nodes[0].folder / "dead_mount.out").read_bytes()
            and time.monotonic() < end
        ):
            time.sleep(0.05)
        said = []
        with sites.ruled(nodes[:1], tmp_path, f"paths: [{dead}]\nthresholds: {{fs.hang: 1}}\n"):
            for _ in range(2):
                began = time.monotonic()
                done = subprocess.run(
                    nodes[0].argv("env", "-i", *argv), capture_output=True, check=False, timeout=60
                )
                said.append((done.returncode, time.monotonic() - began < 32))
        log = (tmp_path / "log").read_text()
        assert said == [(1, True), (0, True)], log
        assert f"fs.hang (blocker, admin): {dead} (fuse dead at {dead}) gives no answer" in log
        assert "trainprobe: UNDETERMINED. " in log
        assert "not started: a check of" in log
    finally:
        for pid in nodes[0].pids():
            with contextlib.suppress(OSError):
                if b"dead_mount" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 10
    while sites.of_ours(nodes[0]) and time.monotonic() < end:
        time.sleep(0.1)
    assert sites.of_ours(nodes[0]) == []


def test_a_health_check_drains_a_sick_node_and_leaves_the_drains_of_others(
    nodes: Sequence[Host], tmp_path: Path
) -> None:
    folder, data = tmp_path / "slurm", tmp_path / "data"
    data.mkdir()
    given = {
        "TRAINPROBE": sites.installed(tmp_path),
        "LOG": tmp_path / "log",
        "METRICS": "/dev/shm/trainprobe.prom",
        "SLURM_CONF": folder / "slurm.conf",
    }
    script = sites.example("health-check.sh", tmp_path, **given)
    more = f"HealthCheckProgram={script}\nHealthCheckInterval=2\nHealthCheckNodeState=ANY\n"
    with (
        sites.ruled(nodes, tmp_path, f"paths: [{data}]\n"),
        made_slurm.slurm(nodes, folder, more=more) as slurm,
    ):
        try:
            for host in nodes:
                sites.without_its_mount(host, tmp_path, data)
                if host is nodes[0]:
                    slurm.run(
                        "scontrol",
                        "update",
                        "NodeName=node1",
                        "State=DRAIN",
                        "Reason=a disk is changed",
                    )
            found = until(slurm, "node2", "drain")
            assert found[1].startswith(f"trainprobe: Mounts: {data} should lie on"), (
                tmp_path / "log"
            ).read_text()
            end = time.monotonic() + 30
            while (
                "node1 is IDLE+DRAIN already (a disk is changed) and was left so."
                not in (tmp_path / "log").read_text()
                and time.monotonic() < end
            ):
                time.sleep(0.2)
            assert state(slurm, "node1") == ("drained", "a disk is changed")
            # The drain comes first, the file with the states only when the look is over.
            failed = 'trainprobe_check_state{host="node2",check="fs.mounts",severity="blocker",who="admin"} 2'
            while (
                failed not in (metrics := nodes[1].run("cat", "/dev/shm/trainprobe.prom").stdout)
                and time.monotonic() < end
            ):
                time.sleep(0.2)
            assert failed in metrics
        finally:
            for host in nodes:
                sites.with_its_mount(host)
        end = time.monotonic() + 20
        while (
            "trainprobe_pass 1" not in nodes[1].run("cat", "/dev/shm/trainprobe.prom").stdout
            and time.monotonic() < end
        ):
            time.sleep(0.2)
        assert (state(slurm, "node1")[1], state(slurm, "node2")[0]) == (
            "a disk is changed",
            "drained",
        )  # healthy again, and left so


def test_the_batch_script_acts_on_each_exit_code(nodes: Sequence[Host], tmp_path: Path) -> None:
    script = sites.batch_script(tmp_path)
    sites.answering(tmp_path)
    with made_slurm.slurm(nodes, tmp_path / "slurm") as slurm:
        path = f"{tmp_path}:{slurm.env['PATH']}"
        jobs = {}
        for code in (0, 1, 3, 10, 70):
            argv = [
                "sbatch",
                "--parsable",
                "--nodelist=node1",
                "--chdir",
                str(tmp_path),
                f"--export=ALL,ANSWER={code},PATH={path}",
                str(script),
            ]
            jobs[code] = slurm.run(*argv).stdout.strip()
        outputs = [tmp_path / f"train-{job}.out" for job in jobs.values()]
        end = time.monotonic() + 60
        while time.monotonic() < end:
            left = slurm.run("squeue", "--noheader")
            if (
                left.returncode == 0
                and not left.stdout.strip()
                and all(path.exists() for path in outputs)
            ):
                break
            time.sleep(0.3)
        said = {code: (tmp_path / f"train-{job}.out").read_text() for code, job in jobs.items()}
        ended = {
            code: slurm.run("scontrol", "show", "job", job).stdout for code, job in jobs.items()
        }
        assert ["torchrun on node1" in said[code] for code in (0, 1, 3, 10, 70)] == [
            True,
            False,
            False,
            False,
            False,
        ], said
        assert [f"ExitCode={code}:0" in ended[code] for code in (1, 3, 70)] == [True, True, True]
        assert ("JobState=COMPLETED" in ended[10], "ended with 3" in said[3]) == (True, True)
        again = said[10].split()[-1]  # "Submitted batch job 6"
        assert (tmp_path / f"bad-nodes-{jobs[10]}.txt").read_text() == "node1\n"
        assert "ExcNodeList=node1" in slurm.run("scontrol", "show", "job", again).stdout
        assert "torchrun on node2 --nnodes=1" in (tmp_path / f"train-{again}.out").read_text()
