"""Starts the command line as a user would, in a folder of its own, and says what came of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.conftest import TOKEN, python_path

NOBODY = 65534


def environment(token: str, **more: str) -> dict[str, str]:
    """What the tool and all below it get: the mark by which leftovers are found, and torchrun on
    the PATH.
    """
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH', '')}"
    return {
        **os.environ,
        "PATH": path,
        "NO_COLOR": "1",
        "OMP_NUM_THREADS": "1",
        TOKEN: token,
        **python_path(),
        **more,
    }


def tool_words(*words: str) -> list[str]:
    return [sys.executable, "-m", "trainprobe", *words]


def call(
    words: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    *,
    prefix: Sequence[str] = (),
    timeout_s: float = 90.0,
) -> subprocess.CompletedProcess[str]:
    """Run the tool to its end. `prefix` are the words of a program that starts it, such as
    unshare.
    """
    whole = [*prefix, *tool_words(*words)]
    return subprocess.run(
        whole,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout_s,
        check=False,
    )


def shown(done: subprocess.CompletedProcess[str]) -> str:
    return (
        f"exit {done.returncode}\n--- stdout\n{done.stdout[-5000:]}\n---"
        f" stderr\n{done.stderr[-3000:]}"
    )


def assert_one_sentence(done: subprocess.CompletedProcess[str], code: int, *parts: str) -> None:
    """Nothing on stdout; on stderr one line from us with all `parts` in it, after at most the
    lines of the ladder.
    """
    assert done.returncode == code, shown(done)
    assert done.stdout == "", shown(done)
    lines = done.stderr.splitlines()
    assert len(lines) == 1, shown(done)
    assert lines[0].startswith("trainprobe: "), shown(done)
    for part in parts:
        assert part in lines[0], f"{part!r} is not said\n{shown(done)}"


def assert_report(done: subprocess.CompletedProcess[str], code: int, *parts: str) -> None:
    """A report on stdout, no traceback of ours anywhere."""
    assert done.returncode == code, shown(done)
    assert "Traceback" not in done.stderr, shown(done)
    assert done.stdout.startswith("diagnose · "), shown(done)
    for part in parts:
        assert part in " ".join(done.stdout.split()), f"{part!r} is not said\n{shown(done)}"
