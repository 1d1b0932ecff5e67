"""`trainprobe ready` on four real hosts: well, and with two faults at once."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import sites
from tests.cluster.conftest import Cluster

REPOSITORY = Path(__file__).parents[2]
SCRIPT = """#!/bin/bash
cd {folder}
export PYTHONPATH={repository}
{before}
{python} -m trainprobe ready --case {folder}/case --json {folder}/report.json --exclude-file {folder}/bad --no-color {more} > {folder}/out 2> {folder}/err
echo $? > {folder}/code
"""


def ready(
    cluster: Cluster, folder: Path, *, before: str = "", more: str = "", python: str = ""
) -> tuple[int, Mapping[str, Any], str]:
    """Run it in a batch script over all hosts; return its exit code, its report and its text."""
    import sys

    folder.mkdir()
    script = folder / "job.sh"
    script.write_text(
        SCRIPT.format(
            folder=folder,
            repository=REPOSITORY,
            before=before,
            more=more,
            python=python or sys.executable,
        ),
        encoding="utf-8",
    )
    done = cluster.slurm.run(
        "sbatch", "--parsable", "-N4", "-o", str(folder / "slurm.out"), str(script)
    )
    code, end = folder / "code", time.monotonic() + 100
    while (
        not (code.exists() and code.read_text(encoding="ascii").strip()) and time.monotonic() < end
    ):  # sbatch --wait looks every ten seconds or less often
        time.sleep(0.2)
    assert code.exists(), done.stderr + (
        (folder / "slurm.out").read_text(encoding="utf-8")
        if (folder / "slurm.out").exists()
        else ""
    )
    report = (
        json.loads((folder / "report.json").read_text(encoding="utf-8"))
        if (folder / "report.json").exists()
        else {}
    )
    return (
        int(code.read_text(encoding="ascii")),
        report,
        (folder / "out").read_text(encoding="utf-8") + (folder / "err").read_text(encoding="utf-8"),
    )


@pytest.mark.root
@pytest.mark.torch
def test_well_nodes_are_ready_and_two_faults_name_their_nodes(
    cluster: Cluster, tmp_path: Path
) -> None:
    code, report, said = ready(cluster, tmp_path / "well", more="--timeout 30")
    assert (code, report["verdict"], report["readiness"]["exclude"]) == (0, "healthy", []), said
    assert not (tmp_path / "well" / "bad").exists()
    states = {row["id"]: row["state"] for row in report["readiness"]["checks"]}
    assert (states["pairs"], states["lim.nofile"]) == ("ok", "ok")
    assert states["host.skew"] in {
        "ok",
        "unknown",
    }  # on a busy machine the exchange takes too long to tell
    assert {
        name
        for row in report["readiness"]["checks"]
        if row["id"] == "pairs"
        for name in row["hosts"]
    } == {"node1", "node2", "node3", "node4"}

    shm = cluster[2].run("mount", "-o", "remount,size=512k", "/dev/shm")
    assert shm.returncode == 0, shm.stderr
    cluster[3].stop()
    try:
        code, report, said = ready(cluster, tmp_path / "ill", more="--timeout 22")
    finally:
        cluster[3].resume()
        cluster[2].run("mount", "-o", "remount,size=256m", "/dev/shm")
    assert (code, report["verdict"]) == (10, "at-risk"), said
    assert report["readiness"]["exclude"] == ["node2", "node3"], said
    assert (tmp_path / "ill" / "bad").read_text(encoding="ascii") == "node[2-3]\n"
    first = {tuple(cause["hosts"]): cause["id"] for cause in reversed(report["causes"])}
    assert first["node2",] == "shm-exhausted"
    assert first["node3",] == "node-not-answering"
    assert "--exclude=node[2-3]" in said


@pytest.mark.root
@pytest.mark.soak
def test_a_folder_that_is_another_disk_of_the_same_kind_is_found_by_a_file(
    cluster: Cluster, tmp_path: Path
) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    data.mkdir()
    other.mkdir()
    try:
        for number in (1, 2, 3, 4):  # all of them have a mount of the same kind there
            source = other if number == 3 else data
            done = cluster[number].run("mount", "--bind", str(source), str(data))
            assert done.returncode == 0, done.stderr
        code, report, said = ready(cluster, tmp_path / "ill", more=f"--timeout 25 --paths {data}")
    finally:
        for number in (1, 2, 3, 4):
            cluster[number].run("umount", "--lazy", str(data))
    assert (code, report["readiness"]["exclude"]) == (10, ["node3"]), said
    assert report["causes"][0]["id"] == "mount-missing"


@pytest.mark.soak
def test_the_published_batch_script_starts_elsewhere_without_the_node_that_is_named(
    cluster: Cluster, tmp_path: Path
) -> None:
    script = sites.batch_script(tmp_path, nodes=3)
    sites.ready_for_real(tmp_path)
    slurm = cluster.slurm
    cluster[2].run("mount", "-o", "remount,size=512k", "/dev/shm")
    try:
        export = f"--export=ALL,PATH={tmp_path}:{slurm.env['PATH']}"
        job = slurm.run(
            "sbatch",
            "--parsable",
            "--nodelist=node[1-3]",
            "--chdir",
            str(tmp_path),
            export,
            str(script),
        ).stdout.strip()
        first, end = tmp_path / f"train-{job}.out", time.monotonic() + 150
        again = began = ""
        while time.monotonic() < end and began.count("torchrun on") < 3:
            time.sleep(0.5)
            found = (
                re.search(r"Submitted batch job (\d+)", first.read_text(encoding="utf-8"))
                if first.exists()
                else None
            )
            again = found[1] if found else ""
            output = tmp_path / f"train-{again}.out"
            began = output.read_text(encoding="utf-8") if again and output.exists() else ""
    finally:
        cluster[2].run("mount", "-o", "remount,size=256m", "/dev/shm")
    said = first.read_text(encoding="utf-8")
    assert "shm-exhausted" in said, said
    assert (tmp_path / f"bad-nodes-{job}.txt").read_text(encoding="ascii") == "node2\n"
    assert "ExcNodeList=node2" in slurm.run("scontrol", "show", "job", again).stdout
    assert [f"torchrun on node{number} --nnodes=3" in began for number in (1, 2, 3, 4)] == [
        True,
        False,
        True,
        True,
    ], began


def test_of_a_step_with_several_tasks_one_leads(cluster: Cluster, tmp_path: Path) -> None:
    import sys

    argv = [
        "srun",
        "-N2",
        "--ntasks-per-node=2",
        "--chdir",
        str(tmp_path),
        sys.executable,
        "-m",
        "trainprobe",
        "ready",
        "--timeout",
        "12",
        "--format",
        "nagios",
    ]
    done = subprocess.run(
        argv,
        env={**cluster.slurm.env, "PYTHONPATH": str(REPOSITORY)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    lines = done.stdout.strip().splitlines()
    assert len([line for line in lines if "leaves it to task 0" in line]) == 3, (
        done.stdout + done.stderr
    )
    assert (
        len(
            [
                line
                for line in lines
                if line.startswith(("TRAINPROBE", "READY", "OK", "UNKNOWN", "WARNING", "CRITICAL"))
            ]
        )
        == 1
    ), done.stdout
