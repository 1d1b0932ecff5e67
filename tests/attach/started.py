"""Start a small job for a test, wait until all of it is there, and end all of it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import TOKEN, end, processes_with

LAUNCHER_NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


class Started:
    """Jobs of one test. Each process that the programs start writes its pid to a file named for
    what it is.
    """

    def __init__(self, folder: Path, token: str) -> None:
        self.folder = self.cwd = folder
        self.token = token
        self.children: list[subprocess.Popen[bytes]] = []
        self.env = {
            name: value for name, value in os.environ.items() if name not in LAUNCHER_NAMES
        } | {TOKEN: token}

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    @contextmanager
    def beneath(self, folder: Path) -> Iterator[None]:
        """Start programs in another folder."""
        before, self.cwd = self.cwd, folder
        yield
        self.cwd = before

    def start(
        self, *argv: str, env: Mapping[str, object] | None = None, own_session: bool = True
    ) -> int:
        """Start a program in the folder; Python programs by the Python of the tests."""
        command = (
            [sys.executable, *argv]
            if argv[0].endswith(".py") or argv[0].startswith("-")
            else list(argv)
        )
        variables = self.env | {name: str(value) for name, value in (env or {}).items()}
        with open(self.folder / "output", "ab") as output:
            child = subprocess.Popen(
                command,
                cwd=self.cwd,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=own_session,
            )
        self.children.append(child)
        return child.pid

    def pid_of(self, name: str, timeout_s: float = 60.0) -> int:
        """Wait until the process called `name` has said its pid."""
        path = self.folder / f"pid.{name}"
        ends = time.monotonic() + timeout_s
        while time.monotonic() < ends:
            if path.exists() and path.read_text():
                return int(path.read_text())
            time.sleep(0.02)
        output = self.folder / "output"
        raise AssertionError(f"{name} never came:\n{output.read_text() if output.exists() else ''}")


@contextmanager
def started(folder: Path, token: str) -> Iterator[Started]:
    """Give a `Started` and end everything that it started, in whatever session that is."""
    jobs = Started(folder, token)
    try:
        yield jobs
    finally:
        for _ in range(5):
            end([child.pid for child in jobs.children if child.poll() is None])
            end(list(processes_with(token)))
            if not processes_with(token):
                break
        for child in jobs.children:
            child.wait(timeout=10)


def until(true: Callable[[], bool], timeout_s: float = 20.0) -> bool:
    """Wait for something to become true; False where it never does."""
    ends = time.monotonic() + timeout_s
    while time.monotonic() < ends:
        if true():
            return True
        time.sleep(0.05)
    return False
