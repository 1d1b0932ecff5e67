"""Faults around the tool: many processes, long and odd command lines, clocks that jump, a case that
goes away, no /proc/locks, and a kill at a random moment.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.trust.kills import kills
from tests.unit.targets.proc_tree import ProcTree
from trainprobe.case import Case
from trainprobe.cli import run
from trainprobe.collect import procfs
from trainprobe.collect.collectors.locks import read_locks
from trainprobe.saved_case import read_case
from trainprobe.targets.jobs import find_jobs

RANK = "import sys, time\nprint(flush=True)\nwhile True: time.sleep(0.05)\n"


def started(folder: Path, *words: str | bytes) -> subprocess.Popen[bytes]:
    (folder / "train.py").write_text(RANK)
    environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    process = subprocess.Popen(
        [sys.executable, "train.py", *words],
        cwd=folder,
        env={**environment, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29513"},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def attach(process: subprocess.Popen[bytes], folder: Path) -> int:
    case, out = str(folder / "case"), str(folder / "out.json")
    return run(["attach", str(process.pid), "--quick", "--case", case, "--json", out, "--no-color"])


def test_a_job_is_found_among_ten_thousand_processes(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path / "proc")
    for pid in range(1000, 11_000):
        (folder := tree.root / str(pid)).mkdir()
        (folder / "stat").write_text(f"{pid} (httpd) S 1 1 1 0 -1 {' '.join(['0'] * 43)}\n")
        (folder / "cmdline").write_bytes(b"/usr/sbin/httpd\0-k\0start\0")
    for rank in range(2):
        variables = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "MASTER_PORT": 29500}
        tree.add(20_000 + rank, 1, "/env/bin/python train.py", variables)
    (job,) = find_jobs(tree.path)
    assert {member.pid for member in job.ranks} == {20_000, 20_001}


def test_a_long_command_line_of_no_encoding(tmp_path: Path) -> None:
    process = started(tmp_path, b"--name=\xff\xfe\x80" + b"x" * 64_000, b"\xc3\x28\x1b[31m")
    try:
        assert attach(process, tmp_path) in (0, 1, 3)
    finally:
        process.kill()
        process.communicate()
    assert not read_case(str(tmp_path / "case")).damage
    assert b"\x1b[31m" not in (tmp_path / "case" / "report.txt").read_bytes()


@pytest.mark.usefixtures("capsys")
def test_a_clock_that_jumps_back_and_forth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, right = random.Random(21), time.time
    monkeypatch.setattr(time, "time", lambda: right() + draw.choice((-1e6, -30.0, 0.0, 30.0, 1e6)))
    process = started(tmp_path)
    try:
        assert attach(process, tmp_path) in (0, 1, 3)
    finally:
        process.kill()
        process.communicate()
    report = json.loads((tmp_path / "out.json").read_text())
    assert report["verdict"] in ("healthy", "undetermined")
    assert not read_case(str(tmp_path / "case")).damage


def test_a_case_that_goes_away_loses_no_evidence_in_memory(tmp_path: Path) -> None:
    folder = tmp_path / "case"
    with Case.create(str(folder), "attach", []) as case:
        case.add("plan", data={"number": 1})
        shutil.rmtree(folder)
        case.add("plan", data={"number": 2})
        assert not case.write_derived("report.txt", "text")
        assert case.keep_file("kept", b"content") == ""
        assert [each.data["number"] for each in case.evidence if each.kind == "plan"] == [1, 2]


def test_a_kernel_without_a_list_of_locks_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: str, *_: int) -> str:
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr(procfs, "read", read)
    found = read_locks({os.getpid()})
    assert (found.outcome, found.reason) == (
        "unavailable",
        "/proc/locks cannot be read: No such file or directory",
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", ["attach", "attach --deep"])
def test_a_kill_leaves_nothing_behind_and_harms_nobody(command: str) -> None:
    """Some; `python -m tests.trust.kills` does fifty of each command."""
    counted = kills(command, 2, 5)
    harmless = {"rows": counted["rows"], "in mid-run": counted["in mid-run"]}
    assert counted == {**dict.fromkeys(counted, 0), **harmless}
