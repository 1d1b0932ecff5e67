"""Whatever hangs in `ready`, it ends in time with a report, and a signal between two of its
parts costs no report.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.tool import environment

HANGS = """
import re, sys
import trainprobe.judge
trainprobe.judge.judge = lambda *_: re.match("(a+)+$", "a" * 60 + "b")
import trainprobe.cli
trainprobe.cli.main()
"""
SIGNALLED = """
import os, signal, time
import trainprobe.ready.gathering as gathering
before = gathering._here
def here(*words):
    before(*words)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.5)
gathering._here = here
import trainprobe.cli
trainprobe.cli.main()
"""
SIGNALLED_LATE = """
import os, signal
import trainprobe.pipelines as pipelines
before = pipelines.conclude
def conclude(*words):
    os.kill(os.getpid(), signal.SIGINT)
    return before(*words)
pipelines.conclude = conclude
import trainprobe.cli
trainprobe.cli.main()
"""


def ready(program: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [
        sys.executable,
        "-c",
        program,
        "ready",
        "--no-slurm",
        "--json",
        "-",
        "--quiet",
        "--timeout",
        "3",
        *words,
    ]
    return subprocess.run(
        argv,
        cwd=folder,
        env=environment("hangs"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("inconclusive", ["", pytest.param("fail", marks=pytest.mark.soak)])
def test_a_judgement_that_hangs_ends_with_what_was_found(inconclusive: str, tmp_path: Path) -> None:
    began = time.monotonic()
    done = ready(
        HANGS,
        tmp_path,
        "--paths",
        str(tmp_path / "nowhere"),
        *(("--inconclusive", inconclusive) if inconclusive else ()),
    )
    assert time.monotonic() - began < 20
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"], report["conclusive"]) == (
        1 if inconclusive else 3,
        "undetermined",
        False,
    ), done.stderr
    assert "hung while judging what was found" in report["says"]
    failed = [row["id"] for row in report["readiness"]["checks"] if row["state"] == "fail"]
    assert any(name.startswith("fs.") for name in failed), report
    assert (tmp_path / report["case"] / "evidence.jsonl").exists()


def test_a_signal_between_two_parts_ends_with_a_report(tmp_path: Path) -> None:
    done = ready(SIGNALLED, tmp_path)
    report = json.loads(done.stdout)
    assert (done.returncode, report["interrupted"]) == (130, True), done.stderr
    assert report["readiness"]["checks"]


def test_a_signal_while_it_is_judged_ends_with_the_report_and_the_code_of_an_interruption(
    tmp_path: Path,
) -> None:
    done = ready(SIGNALLED_LATE, tmp_path)
    report = json.loads(done.stdout)
    assert (done.returncode, report["interrupted"]) == (130, True), done.stderr
