"""`trainprobe ready --sbatch` against a real SLURM: its answers, options as sbatch itself reads
them, and a corrected script that runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.cluster.conftest import Cluster
from tests.conftest import ROOT
from trainprobe.sbatch.layout import shape
from trainprobe.sbatch.script import read_script

PROGRAM = """
import os, sys
print(f"rank {os.environ['SLURM_PROCID']} of {os.environ['SLURM_NTASKS']} at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", flush=True)
"""
ILL = """#!/bin/bash
#SBATCH --job-name=planned
#SBATCH --partition=main
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=5
#SBATCH --output={folder}/out.log
export MASTER_ADDR=$SLURM_JOB_NODELIST
export MASTER_PORT=$((60000 + SLURM_JOB_ID % 20000))
#SBATCH --comment=late
srun {python} {folder}/program.py
"""
# Each as sbatch reads it, by what scontrol shows of the job then.
SPELLED = (
    ("-N 2 -n4 -c 2 -t 1:30:00", "NumNodes=2-2 NumTasks=4 CPUs/Task=2 TimeLimit=01:30:00"),
    (
        "--nodes=1-2 --ntasks-per-node 2 -J 'two words' --time=90",
        "NumNodes=1-2 CPUs/Task=1 TimeLimit=01:30:00",
    ),
    (
        '--ntasks=3 --time 1-02 # a comment --nodes=4\n#SBATCH --job-name="a#b"',
        "NumTasks=3 TimeLimit=1-02:00:00",
    ),
    (
        "--nodes=2 --cpus-per-t=2 -t0:30 --requeue\n#SBATCH -N 1",
        "NumNodes=1-1 CPUs/Task=2 TimeLimit=00:01:00 Requeue=1",
    ),
    (
        "-N 1\n\n# words\n\n#SBATCH --time=7\necho\n#SBATCH --time=9",
        "NumNodes=1-1 TimeLimit=00:07:00",
    ),
)


def ask(cluster: Cluster, folder: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    env = {**cluster.slurm.env, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    argv = [
        sys.executable,
        "-m",
        "trainprobe",
        "ready",
        *words[:2],
        "--json",
        str(folder / "told.json"),
        *words[2:],
    ]
    done = subprocess.run(
        argv, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    return (
        done.returncode,
        json.loads((folder / "told.json").read_text(encoding="utf-8")),
        done.stdout,
    )


def states(report: dict[str, Any]) -> dict[str, str]:
    return {row["id"]: row["state"] for row in report["readiness"]["checks"]}


def test_a_script_is_judged_by_the_site_and_runs_when_it_is_corrected(
    cluster: Cluster, tmp_path: Path
) -> None:
    os.chmod(tmp_path, 0o755)
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    script = tmp_path / "job.sh"
    before = ILL.format(folder=tmp_path, python=sys.executable)
    script.write_text(before, encoding="utf-8")
    code, report, text = ask(
        cluster, tmp_path, "--sbatch", str(script), "--write", str(tmp_path / "fixed.sh")
    )
    found = states(report)
    assert code == 1, text
    assert {name for name, state in found.items() if state == "fail"} == {
        "plan.script",
        "plan.master",
        "plan.port",
    }, text
    assert (found["plan.site"], found["plan.time"], found["plan.cpus"], found["plan.output"]) == (
        "ok",
        "ok",
        "ok",
        "warn",
    )
    lines = {row["id"]: row["line"] for row in report["sbatch"]["rows"] if row["state"] == "fail"}
    assert lines == {"plan.script": 10, "plan.master": 8, "plan.port": 9}
    assert script.read_text(encoding="utf-8") == before
    assert "job.sh:8" in text
    again, report, text = ask(cluster, tmp_path, "--sbatch", str(tmp_path / "fixed.sh"))
    assert (again, report["verdict"]) == (0, "healthy"), text
    number = cluster.slurm.job((tmp_path / "fixed.sh").read_text(encoding="utf-8"))
    written = tmp_path / f"out-{number}.log"
    until = time.monotonic() + 40
    while (
        not written.exists() or written.read_text(encoding="utf-8").count("rank") < 4
    ) and time.monotonic() < until:
        time.sleep(0.2)
    said = sorted(written.read_text(encoding="utf-8").split("\n"))
    assert [line.split(":")[0] for line in said if line] == [
        f"rank {rank} of 4 at node1" for rank in range(4)
    ]
    assert all(line.endswith(f":{10000 + number % 20000}") for line in said if line)
    # more than the site has, on the command line; and a partition that is not there
    code, report, text = ask(
        cluster,
        tmp_path,
        "--sbatch",
        str(tmp_path / "fixed.sh"),
        "--",
        "--nodes=9",
        "--cpus-per-task=8",
    )
    assert (code, states(report)["plan.site"], states(report)["plan.cpus"]) == (
        1,
        "fail",
        "fail",
    ), text
    code, report, text = ask(
        cluster, tmp_path, "--sbatch", str(tmp_path / "fixed.sh"), "--", "-p", "nowhere"
    )
    assert (code, states(report)["plan.site"]) == (1, "fail"), text
    cluster.slurm.run("scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        code, report, text = ask(cluster, tmp_path, "--sbatch", str(tmp_path / "fixed.sh"))
        assert (code, states(report)["plan.site"]) == (1, "fail"), text
    finally:
        cluster.slurm.run("scontrol", "update", "PartitionName=main", "State=UP")


def test_options_are_read_as_sbatch_reads_them(cluster: Cluster) -> None:
    for line, expected in SPELLED:
        text = f"#!/bin/sh\n#SBATCH {line}\ntrue\n"
        number = cluster.slurm.job(text, "--hold")
        shown = dict(
            word.split("=", 1)
            for word in cluster.slurm.run(
                "scontrol", "show", "job", str(number), "--oneliner"
            ).stdout.split()
            if "=" in word
        )
        cluster.slurm.run("scancel", str(number))
        for word in expected.split():
            name, value = word.split("=", 1)
            assert shown[name] == value, (line, name, shown[name])
        script = read_script(text)
        ours = shape(script.options)
        assert str(ours.nodes) == shown["NumNodes"].split("-")[0], line
        if ours.tasks is not None:
            assert str(ours.tasks) == shown["NumTasks"], line
        assert (ours.cpus or 1) == int(shown["CPUs/Task"]), line
