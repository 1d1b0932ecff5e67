"""However the tool ends, and at whichever rung: no process of the run is left, and the case can
be read.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import end, processes_with
from tests.e2e.tool import environment, tool_words

SCRIPTS = Path(__file__).parent / "scripts"
GONE_WITHIN_S = 3.0
PATIENCE_S = 60.0
TRAINER = str(SCRIPTS / "trains_with_workers.py")
RUNG = ["diagnose", "--nproc", "2", "--case", "case", "--python", sys.executable]
TORCHRUN = ["torchrun", "--nproc-per-node", "{ranks}", TRAINER]

WORDS = {
    "import_memory": [*RUNG, "--only", "import_memory", "--imports", "sleeps_at_import"],
    "gloo_control": [*RUNG, "--only", "gloo_control"],
    "train_step": [*RUNG, "--only", "train_step"],
    "launched": [*RUNG, "--only", "user_script", "--", TRAINER],
    "torchrun": [*RUNG, "--only", "user_script", "--", *TORCHRUN],
}
# How many processes there are when the rung is in full swing: the tool, its keeper, ranks, launcher
# and loader workers.
IN_FULL_SWING = {
    "import_memory": 5,
    "gloo_control": 4,
    "train_step": 3,
    "launched": 8,
    "torchrun": 9,
}
ENDS = ["SIGKILL", "SIGTERM", "SIGHUP", "ctrl-c", "ctrl-c-twice"]
CHOSEN = {
    "import_memory": ["SIGKILL", "SIGTERM", "ctrl-c-twice"],
    "gloo_control": ["ctrl-c"],
    "train_step": ["SIGKILL"],
    "launched": ["SIGHUP", "ctrl-c-twice"],
    "torchrun": ["SIGKILL", "ctrl-c"],
}


def pairs() -> list[object]:
    """The chosen pairs; all others are for the soak."""
    found: list[object] = []
    for rung in WORDS:
        for how in ENDS:
            marks = [] if rung == "import_memory" else [pytest.mark.torch]
            marks += [] if how in CHOSEN[rung] else [pytest.mark.soak]
            found.append(pytest.param(rung, how, marks=marks, id=f"{rung}-{how}"))
    return found


def until(true: Callable[[], bool], seconds: float) -> bool:
    ends = time.monotonic() + seconds
    while not true():
        if time.monotonic() > ends:
            return False
        time.sleep(0.05)
    return True


def finish(tool: subprocess.Popen[bytes], how: str) -> None:
    """End the tool; Ctrl-C goes to its whole process group, as from a terminal."""
    if how == "ctrl-c-twice":
        os.killpg(tool.pid, signal.SIGINT)
        time.sleep(0.1)
    if how.startswith("ctrl-c"):
        os.killpg(tool.pid, signal.SIGINT)
    else:
        tool.send_signal(signal.Signals[how])


@pytest.mark.parametrize(("rung", "how"), pairs())
def test_nobody_is_left(rung: str, how: str, token: str, job_folder: Path) -> None:
    shutil.copy(SCRIPTS / "sleeps_at_import.py", job_folder)
    scratch = job_folder / "scratch"
    scratch.mkdir()
    env = environment(token, TMPDIR=str(scratch))
    env["PYTHONPATH"] = f"{job_folder}{os.pathsep}{env.get('PYTHONPATH', '')}"
    out, err = job_folder / "out", job_folder / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        tool = subprocess.Popen(
            tool_words(*WORDS[rung]),
            cwd=job_folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            # Tests that run under nohup hand an ignored SIGHUP down, and the tool honours that.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509
        )
    try:
        trains = rung in ("launched", "torchrun")
        assert until(lambda: not trains or (job_folder / "rank1-of-2").exists(), PATIENCE_S), (
            err.read_text()
        )
        assert until(lambda: len(processes_with(token)) >= IN_FULL_SWING[rung], PATIENCE_S), (
            f"{processes_with(token)}\n{err.read_text()}"
        )
        below = set(processes_with(token)) - {tool.pid}
        finish(tool, how)
        began = time.monotonic()
        code = tool.wait(20)
        took_s = time.monotonic() - began
        assert until(lambda: not processes_with(token), GONE_WITHIN_S), (
            f"left after {how}: {processes_with(token)}"
        )
    finally:
        tool.kill()
        tool.wait()
        end(list(processes_with(token)))
    assert below, "there was somebody to be left behind"
    told = f"{took_s:.1f} s\n--- stdout\n{out.read_text()}\n--- stderr\n{err.read_text()}"
    assert "Traceback" not in told, told
    if how == "SIGKILL":
        assert code == -signal.SIGKILL
        assert until(lambda: not list(scratch.glob("trainprobe-*")), GONE_WITHIN_S), (
            "the keeper takes the working folder along"
        )
    else:
        # The second Ctrl-C may end Python by the signal itself, which a shell shows as 130 too.
        assert code in ((130, -signal.SIGINT) if how == "ctrl-c-twice" else (130,)), told
        assert took_s < 15.0, told
    if how in ("SIGTERM", "SIGHUP", "ctrl-c"):
        assert "UNDETERMINED" in out.read_text(), told
        assert "interrupted" in out.read_text(), told
        assert not list(scratch.glob("trainprobe-*")), "our own working folders go with us"
    assert_readable(job_folder, env)


def assert_readable(folder: Path, env: dict[str, str]) -> None:
    done = subprocess.run(
        tool_words("explain", "case"),
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    rows = [
        json.loads(line)
        for line in (folder / "case" / "evidence.jsonl").read_text().splitlines()
        if line.startswith("{") and line.endswith("}")
    ]
    failed = [
        row["data"]["cell"]
        for row in rows
        if row["kind"] == "rung" and row["data"]["outcome"] in ("failed", "timed_out", "crashed")
    ]
    # Readable, and no claim of health: undetermined, unless a smaller size had already failed
    # before the end.
    assert done.returncode == (1 if failed else 3), (
        f"{done.returncode}, failed before: {failed}\n{done.stdout}"
    )
    assert done.stdout.startswith("diagnose · "), done
    assert not done.stderr, done
