"""Timeouts read in scripts as text, the scheduler's end, and the newest checkpoints."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.collect import child_programs, deadlines_child
from trainprobe.collect.collector import JobView, collect
from trainprobe.collect.collectors import deadlines
from trainprobe.collect.collectors.deadlines import read_deadlines
from trainprobe.facts import Checkpoint, Deadline, read

NOW = 1_800_000_000.0
SCRIPT = """
import datetime, torch.distributed as dist
from datetime import timedelta
output_dir = "runs/a"
dist.init_process_group("gloo", timeout=datetime.timedelta(minutes=20, seconds=30))
group = dist.new_group([0, 1], timeout=timedelta(0, 60 * 2))
args = TrainingArguments(output_dir="out", ddp_timeout=7200)
torch.save(model, f"ckpts/model-{step}.pt")
"""


def touch(path: Path, at: float, size: int = 10) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (at, at))


def test_a_scripts_timeouts_and_folders(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    found = deadlines_child.read_script(str(tmp_path / "train.py"))
    assert [(call["call"], call["seconds"]) for call in found["timeouts"]] == [
        ("init_process_group", 1230.0),
        ("new_group", 120.0),
        ("TrainingArguments", 7200.0),
    ]
    assert sorted(found["folders"]) == ["ckpts", "out", "runs/a"]


@pytest.mark.parametrize("text", ["def broken(:", "x = " + "(" * 500, "\0"])
def test_a_script_that_cannot_be_read_is_told_of(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.py").write_text(text)
    assert deadlines_child.read_script(str(tmp_path / "train.py"))["flaw"]
    assert deadlines_child.read_script(str(tmp_path / "none.py"))["flaw"].startswith(
        "FileNotFoundError"
    )


def script_of(text: str, tmp_path: Path) -> list[dict[str, Any]]:
    (tmp_path / "t.py").write_text(text)
    return [{"script": "t.py", **deadlines_child.read_script(str(tmp_path / "t.py"))}]


@pytest.mark.parametrize(
    ("text", "words", "environment", "backend", "expected"),
    [
        (
            "init_process_group('gloo')",
            [],
            {},
            "gloo",
            (1800.0, "torch's default for gloo, since none was found"),
        ),
        (
            "init_process_group()",
            [],
            {},
            "nccl",
            (600.0, "torch's default for NCCL, since none was found"),
        ),
        ("pass", ["--ddp_timeout", "90"], {}, "", (90.0, "command line: --ddp_timeout 90")),
        (
            "pass",
            ["--distributed-timeout-minutes=4"],
            {},
            "",
            (240.0, "command line: --distributed-timeout-minutes 4"),
        ),
        ("pass", [], {"DEEPSPEED_TIMEOUT": "5"}, "", (300.0, "DEEPSPEED_TIMEOUT=5")),
        (
            "init_process_group(timeout=timedelta(seconds=45))",
            [],
            {},
            "gloo",
            (45.0, "t.py:1 init_process_group"),
        ),
    ],
)
def test_where_a_timeout_comes_from(
    tmp_path: Path,
    text: str,
    words: list[str],
    environment: dict[str, str],
    backend: str,
    expected: tuple[float, str],
) -> None:
    (row,) = deadlines.timeouts(script_of(text, tmp_path), words, environment, backend, "")
    assert (row["seconds"], row["source"]) == expected


def test_a_timeout_that_the_program_works_out_is_not_known(tmp_path: Path) -> None:
    assert (
        deadlines.timeouts(
            script_of("init_process_group('nccl', timeout=limit())", tmp_path),
            [],
            {},
            "nccl",
            "cuda",
        )
        == []
    )


def test_the_end_that_slurm_sets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert deadlines.scheduler_end({"SLURM_JOB_END_TIME": "1800000000"}) == {
        "ends_at": 1_800_000_000.0,
        "source": "SLURM_JOB_END_TIME",
    }
    assert deadlines.scheduler_end({}) is None
    assert (
        deadlines.parse_scontrol(
            "JobId=7 StartTime=2026-11-21T01:00:00 EndTime=Unknown Deadline=N/A"
        )
        is None
    )
    assert deadlines.parse_scontrol("JobId=7 EndTime=2026-05-38T12:00:00") is None
    (tmp_path / "scontrol").write_text(
        "#!/bin/sh\necho JobId=$5 TimeLimit=01:00:00 EndTime=2026-11-21T05:00:00 Deadline=N/A\n"
    )
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    end = deadlines.scheduler_end({"SLURM_JOB_ID": "7"})
    assert end == {
        "ends_at": time.mktime((2026, 11, 21, 5, 0, 0, 0, 0, -1)),
        "source": "scontrol show job",
    }


def test_folders_of_a_command_line() -> None:
    words = [
        "train.py",
        "--output_dir",
        "out",
        "--save=ck",
        "--lr",
        "3",
        "trainer.default_root_dir=runs",
        "--logging-dir",
        "--resume",
        "x",
    ]
    assert deadlines.folders_in(words) == ["out", "ck", "runs"]


def test_the_newest_checkpoints_of_the_job(tmp_path: Path) -> None:
    touch(tmp_path / "out" / "checkpoint-500" / "model.safetensors", NOW + 10, 100)
    touch(tmp_path / "out" / "checkpoint-500" / "optimizer.pt", NOW + 12, 200)
    touch(tmp_path / "last.ckpt", NOW - 500)
    touch(
        tmp_path / "data" / "train.pt", NOW - 500
    )  # there before the job, and its name does not say that it is a checkpoint
    touch(tmp_path / "model.bin", NOW + 5, 7)
    touch(tmp_path / "notes.txt", NOW + 50)
    touch(tmp_path / ".venv" / "lib" / "x.pt", NOW + 60)
    found = deadlines_child.newest(str(tmp_path), NOW, time.monotonic() + 5)
    assert [
        (os.path.relpath(row["path"], tmp_path), row["bytes"], row["modified_at"])
        for row in found["checkpoints"]
    ] == [
        ("out/checkpoint-500", 300, NOW + 12),
        ("model.bin", 7, NOW + 5),
        ("last.ckpt", 10, NOW - 500),
    ]
    assert not found["cut"]


def test_a_huge_folder_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines_child, "ENTRIES_CAP", 3)
    for number in range(9):
        touch(tmp_path / f"{number}.pt", NOW)
    assert deadlines_child.newest(str(tmp_path), None, time.monotonic() + 5)["cut"]


def test_a_whole_look(case: Case, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    touch(tmp_path / "out" / "checkpoint-1" / "model.pt", NOW)
    job = {
        "cwd": str(tmp_path),
        "script": "train.py",
        "began": NOW - 60,
        "backend": "gloo",
        "environment": {"0": {"SLURM_JOB_END_TIME": "1800000900"}},
    }
    data = {**job, "ranks": [{"cmdline": "python train.py --save_dir 'a b'"}]}
    (evidence,) = collect(case, deadlines.COLLECTOR, JobView(data=data), 5.0)
    assert evidence.outcome == "ok"
    assert evidence.data["looked_in"][0] == str(tmp_path / "a b")
    facts = read([evidence])
    assert [(one.kind, one.seconds, one.ends_at) for one in facts.of(Deadline)] == [
        ("group", 1230.0, None),
        ("group", 120.0, None),
        ("group", 7200.0, None),
        ("scheduler", None, 1_800_000_900.0),
    ]
    (checkpoint,) = facts.of(Checkpoint)
    assert (checkpoint.path, checkpoint.bytes, checkpoint.modified_at) == (
        str(tmp_path / "out" / "checkpoint-1"),
        10,
        NOW,
    )


def test_a_file_system_that_hangs_does_not_hold_us(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "deadlines_child.py"
    program.write_text(
        'import time; print(\'{"script": "t.py", "timeouts": [], "flaw": ""}\', flush=True);'
        " time.sleep(60)"
    )
    monkeypatch.setattr(child_programs, "HERE", str(tmp_path))
    began = time.monotonic()
    seen = read_deadlines([], {"cwd": "/", "script": "t.py"}, 0.5)
    assert time.monotonic() - began < 3
    assert seen.outcome == "partial"
    assert "may hang" in seen.reason
    assert seen.data["group_timeouts"][0]["seconds"] == 1800.0
