"""What is looked at before a script is judged: the site, paths, this host. What gives no answer
is unknown, and said.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trainprobe.cli import run
from trainprobe.cli.output import output_of
from trainprobe.cli.sbatch_plan import sbatch_plan
from trainprobe.collect.sbatch_script import look_at_paths, read_called, read_text
from trainprobe.errors import UsageError
from trainprobe.sbatch.engine import plan_of
from trainprobe.sbatch.site import LoginNode, node_of, partition_of, version_of
from trainprobe.targets.slurm_site import (
    NODE_FIELDS,
    PARTITION_FIELDS,
    config_of,
    rows_of,
    slurm_site,
)

SCRIPT = (
    "#!/bin/bash\n#SBATCH -N 1 --time=5\nexport"
    " WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567\nsrun python3 program.py\n"
)


def test_a_scontrol_that_hangs_is_unknown_within_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("scontrol", "srun"):
        (tmp_path / name).write_text("#!/bin/sh\nsleep 60\n", encoding="ascii")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    began = time.monotonic()
    site = slurm_site(0.3)
    assert time.monotonic() - began < 10
    assert (site.config, site.partitions, site.nodes) == ({}, (), ())
    assert len(site.unknown) >= 1
    assert "Configuration" in site.unknown[0]


def test_rows_of_scontrol_are_cut_to_what_matters_and_never_run() -> None:
    partition = (
        "PartitionName=a b=c Default=YES MaxTime=1-00:00:00 Nodes=n[1-3],x OverSubscribe=EXCLUSIVE"
        " State=UP Evil=$(touch /tmp/x) DefMemPerCPU=1000"
    )
    (row,) = rows_of(partition, PARTITION_FIELDS)
    found = partition_of(row)
    assert (found.max_time, found.nodes, found.exclusive, found.default, found.mem_per_cpu) == (
        1440,
        ("n1", "n2", "n3", "x"),
        True,
        True,
        1000,
    )
    assert "Evil" not in row
    (row,) = rows_of(
        "NodeName=n1 OS=Linux 5.4 #1 SMP CPUTot=64 RealMemory=1000"
        " Gres=gpu:a100:4(S:0-1),gpu:h100:4 State=IDLE*+DRAIN AvailableFeatures=a,b",
        NODE_FIELDS,
    )
    node = node_of(row)
    assert (node.cpus, node.memory, node.gpus, node.usable, node.features) == (
        64,
        1000,
        8,
        False,
        ("a", "b"),
    )
    assert config_of("x\nKillWait = 30 sec\nSecret = 1\n" + "A = B\n" * 10_000) == {
        "KillWait": "30 sec"
    }
    assert [version_of(text) for text in ("slurm-wlm 22.05.8", "slurm 24.11", "?")] == [
        (22, 5),
        (24, 11),
        None,
    ]
    for hostile in (
        "\0" * 1000,
        "=" * 100_000,
        "PartitionName=" + "x" * 10**6,
        "NodeName=a[1-999999999] Gres=gpu:" + "9" * 4000,
    ):
        rows_of(hostile, PARTITION_FIELDS)
        [node_of(one) for one in rows_of(hostile, NODE_FIELDS)]


def test_paths_are_told_and_one_that_hangs_has_a_name(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(
        "import torch\nDataLoader(d,"
        " num_workers=7)\ntorch.distributed.init_process_group('nccl')\n",
        encoding="utf-8",
    )
    os.mkfifo(tmp_path / "pipe.py")
    paths = [
        (str(tmp_path), "write"),
        (str(tmp_path / "t.py"), "read"),
        (str(tmp_path / "gone"), "read"),
    ]
    states, about, trouble = look_at_paths(paths, {"t.py": str(tmp_path / "t.py")}, 10)
    assert [states[path] for path, _ in paths] == ["folder", "file", "missing"]
    assert (
        about["t.py"]["workers"],
        about["t.py"]["inits"],
        about["t.py"]["reads_slurm"],
        trouble,
    ) == (7, True, False, [])
    states, about, trouble = look_at_paths(
        paths[:1], {"pipe.py": str(tmp_path / "pipe.py")}, 1
    )  # nobody writes into it
    assert (states[str(tmp_path)], about) == ("folder", {})
    assert "pipe.py gave no answer" in trouble[0]


def test_a_shell_script_that_is_called_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(
        "source env.sh\ntorchrun --nnodes=$NODES --nproc-per-node=$1 train.py\n", encoding="utf-8"
    )
    (tmp_path / "env.sh").write_text("NODES=3\n", encoding="utf-8")
    text = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 --gres=gpu:4\nsrun bash run.sh 4\n"
    called = plan_of(text, (), None, LoginNode(cwd=str(tmp_path))).script.called
    files = read_called((*called, ("../out.sh", None)), str(tmp_path), 10)
    assert set(files) == {"run.sh"}
    files |= read_called((("env.sh", str(tmp_path)),), str(tmp_path), 10)
    (launch,) = plan_of(text, (), None, LoginNode(cwd=str(tmp_path), files=files)).launches
    assert (launch.place, launch.machines, launch.per_node, launch.shape.tasks_on_node) == (
        "torchrun in line 3 (run.sh)",
        (3, 3),
        4,
        4,
    )


def test_without_slurm_it_cannot_be_told_and_secrets_stay_here(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print('hello')\n", encoding="utf-8")
    (tmp_path / "job.sh").write_text(SCRIPT, encoding="utf-8")
    env = {**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    argv = [
        sys.executable,
        "-m",
        "trainprobe",
        "ready",
        "--sbatch",
        "job.sh",
        "--json",
        "told.json",
        "--case",
        "case",
        "--write",
        "fixed.sh",
    ]
    done = subprocess.run(
        argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    report = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    assert (done.returncode, report["verdict"]) == (3, "undetermined"), done.stdout
    assert {row["id"]: row["state"] for row in report["readiness"]["checks"]}[
        "plan.site"
    ] == "unknown"
    assert "could not be asked" in done.stdout
    kept = (
        "".join(
            path.read_text(encoding="utf-8")
            for path in (tmp_path / "case").iterdir()
            if path.is_file()
        )
        + done.stdout
    )
    assert "0123456789abcdef" not in kept
    assert "0123456789abcdef" in (tmp_path / "fixed.sh").read_text(encoding="utf-8")
    assert (tmp_path / "job.sh").read_text(encoding="utf-8") == SCRIPT


def test_a_script_is_told_in_each_form_and_with_its_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.sh").write_text(
        "#!/bin/sh\n#SBATCH --nodes=1\nsrun hostname\n", encoding="utf-8"
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    argv = ["ready", "--sbatch", str(tmp_path / "job.sh"), "--quiet"]
    assert (run([*argv, "--format", "nagios"]), run([*argv, "--inconclusive", "pass"])) == (
        3,
        0,
    )  # no SLURM is here to be asked
    assert capsys.readouterr().out.startswith("TRAINPROBE UNKNOWN - undetermined: ")
    for wrong in (
        ["--format", "xml"],
        ["--nodes", "node1"],
        ["--exclude-file", "bad"],
        ["--drain", "node1"],
    ):
        assert run([*argv, *wrong]) == 2


@pytest.mark.parametrize("content", [None, b"\0\1", b"x" * (2**20 + 1)])
def test_what_is_no_script_is_said_at_once(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "job.sh"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError):
        read_text(str(path))


def test_the_script_itself_is_never_written(tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    path.write_text(SCRIPT, encoding="utf-8")
    output = output_of("script", quiet=True)
    for target in (path, tmp_path, tmp_path / "no" / "file"):
        with pytest.raises(UsageError):
            sbatch_plan(str(path), (), write=str(target), case=None, output=output)
