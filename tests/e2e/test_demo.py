"""`trainprobe demo` with real jobs: the answer, and that nothing is left however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import TOKEN, RunTool, processes_with, python_path
from trainprobe.demo.jobs import jobs

PATIENCE_S = 90.0
GONE_WITHIN_S = 5.0
NAMES = [
    pytest.param(job.name, marks=() if job.name == "file-lock-held" else pytest.mark.soak)
    for job in jobs()
]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_demo_shows_the_log_the_answer_and_what_it_rests_on(
    name: str, run_tool: RunTool, job_folder: Path
) -> None:
    ran = run_tool("demo", name, "--python", sys.executable)
    (job,) = (job for job in jobs() if job.name == name)
    if any(word in ran.stderr for word in job.needs):
        pytest.skip(ran.stderr)
    assert ran.exit_code == 0, ran
    log, _, answer = ran.stdout.partition("\n$ trainprobe attach ")
    assert "  step " in log or " step " in log
    assert "(Nothing more for 5 s." in log
    assert (job.cause or "HEALTHY") in answer
    assert job.moral.split()[-1] in answer
    assert {path.name for path in job_folder.iterdir()} <= {"stdout", "stderr"}


@pytest.mark.torch
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_of_a_demo_that_is_ended(
    how: signal.Signals, token: str, job_folder: Path
) -> None:
    words = [sys.executable, "-m", "trainprobe", "demo", "file-lock-held"]
    environment = {**os.environ, TOKEN: token, "TMPDIR": str(job_folder), **python_path()}
    process = subprocess.Popen(
        [*words, "--python", sys.executable],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    with process.stdout as lines:
        until = time.monotonic() + PATIENCE_S
        while b" step " not in lines.readline() and time.monotonic() < until:
            pass
        process.send_signal(how)
        process.wait(PATIENCE_S)
    until = time.monotonic() + GONE_WITHIN_S
    while time.monotonic() < until and (processes_with(token) or any(job_folder.iterdir())):
        time.sleep(0.05)
    assert not processes_with(token)
    assert not list(job_folder.iterdir())
    assert process.returncode == (-how if how == signal.SIGKILL else 130)
