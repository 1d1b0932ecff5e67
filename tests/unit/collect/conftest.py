"""Real processes for the looks: each says `ready` before a test goes on, and none outlives its
test.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trainprobe.case import Case

NOBODY = 65534


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    made = Case.create(str(tmp_path / "case"), "diagnose", [])
    yield made
    made.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Run a Python program until it prints a line: `start(source, *arguments)`; or another
    program: `start(argv=[...])`.
    """
    started: list[subprocess.Popen[bytes]] = []

    def run(
        source: str = "", *arguments: str, name: str = "program.py", argv: list[str] | None = None
    ) -> subprocess.Popen[bytes]:
        if argv is None:
            program = tmp_path / name
            program.write_text(source)
            argv = [sys.executable, str(program), *arguments]
            child = subprocess.Popen(argv, stdout=subprocess.PIPE)
            started.append(child)
            assert child.stdout is not None
            assert child.stdout.readline(), "the program ended before it was ready"
        else:
            child = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
            started.append(child)
        return child

    yield run
    for child in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
        child.wait(10)
        if child.stdout is not None:
            child.stdout.close()


@pytest.fixture
def until() -> Callable[[Callable[[], Any]], Any]:
    """Look again and again until what it returns is true, and return that; fails after 10 s."""

    def wait(look: Callable[[], Any]) -> Any:
        ends = time.monotonic() + 10
        while time.monotonic() < ends:
            found = look()
            if found:
                return found
            time.sleep(0.01)
        pytest.fail(f"it did not come to pass within 10 s: {look()!r}")

    return wait


@pytest.fixture
def fake_py_spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a shell script in py-spy's place; it sees py-spy's arguments."""

    def install(script: str) -> None:
        path = tmp_path / "py-spy"
        path.write_text("#!/bin/sh\n" + script + "\n")
        path.chmod(0o755)
        monkeypatch.setenv("TRAINPROBE_PY_SPY", str(path))

    return install


@pytest.fixture
def as_nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Return what a look returns when the user nobody makes it. Skips where we are not root."""
    if os.geteuid() != 0:
        pytest.skip("only root can look with another user's eyes")
    folder = tempfile.mkdtemp(prefix="trainprobe-test-")
    os.chmod(folder, stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    real = shutil.which(
        "py-spy", path=os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")
    )
    if real is None:
        pytest.skip("py-spy is not installed")
    shutil.copy(real, folder)
    monkeypatch.setenv("TRAINPROBE_PY_SPY", os.path.join(folder, "py-spy"))

    def call(look: Callable[[], Any]) -> Any:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            answer: Any = None
            try:
                os.chdir("/")
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                answer = look()
            except BaseException as error:  # noqa: BLE001 - whatever happens in the child must come back to the test
                answer = repr(error)
            finally:
                os.write(writing, pickle.dumps(answer))
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            answer = pickle.loads(pipe.read())
        os.waitpid(child, 0)
        return answer

    yield call
    shutil.rmtree(folder)
