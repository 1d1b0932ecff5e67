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
from trainprobe.model.codec import to_json
from trainprobe.model.evidence import Evidence
from trainprobe.nodes.answers import SCHEMA
from trainprobe.ready.local_checks import KIND
from trainprobe.ready.remote_checks import CELL

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


# `good` answers in place of ssh, `bad` does not.
STANDS_IN = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
[ "$2" = good ] || exec sleep 60
cat {answer}
"""


def ready(
    program: str, folder: Path, *words: str, timeout: str = "3", **variables: str
) -> subprocess.CompletedProcess[str]:
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
        timeout,
        *words,
    ]
    return subprocess.run(
        argv,
        cwd=folder,
        env={**environment("hangs"), **variables},
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


def test_a_node_that_gave_no_answer_is_left_out_also_where_the_judgement_hangs(
    tmp_path: Path,
) -> None:
    answer, stands_in, out = (tmp_path / name for name in ("answer", "stands-in", "bad-nodes"))
    checks = to_json(Evidence("E1", KIND, cell=CELL, source="trainprobe", data={"checks": []}))
    says = [{"schema": SCHEMA, "says": "begin"}, checks, {"schema": SCHEMA, "says": "end"}]
    answer.write_text("".join(f"{json.dumps(row)}\n" for row in says))
    stands_in.write_text(STANDS_IN.format(answer=answer))
    stands_in.chmod(0o755)
    words = ("--nodes", "good,bad", "--exclude-file", str(out))
    done = ready(HANGS, tmp_path, *words, timeout="8", TRAINPROBE_SSH=str(stands_in))
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"], report["conclusive"]) == (10, "at-risk", False)
    assert report["says"].startswith("bad had given no answer")
    assert report["readiness"]["exclude"] == ["bad"], done.stderr
    assert out.read_text() == "bad\n"


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
