"""Where real misbehaving programs are started. They say by FIFO when they are there, so nothing
waits and hopes.
"""

from __future__ import annotations

import os
import select
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from trainprobe.system.child import ChildSpec
from trainprobe.system.keeper import Keeper
from trainprobe.system.proc import listed_pids, read_file, read_stat

PROGRAMS = Path(__file__).parent.parent / "programs"
PATIENCE_S = 30.0  # far more than anything here takes, also on a busy machine


class Stage:
    """One test's programs: how to start them, who has announced itself, and who is still alive."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark = folder, uuid.uuid4().hex
        self.pids: dict[str, int] = {}
        self._unread = b""
        os.mkfifo(folder / "fifo")
        self._fifo = os.open(folder / "fifo", os.O_RDWR | os.O_NONBLOCK)

    def close(self) -> None:
        os.close(self._fifo)

    @property
    def env(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": f"{PROGRAMS}{os.pathsep}{PROGRAMS.parent.parent}",
            "TRAINPROBE_TEST_FIFO": str(self.folder / "fifo"),
            "TRAINPROBE_TEST_MARK": self.mark,
        }

    def argv(self, program: str, *args: str) -> tuple[str, ...]:
        return (sys.executable, str(PROGRAMS / program), *args)

    def output(self, key: str) -> Path:
        return self.folder / f"{key}.out"

    def spec(
        self, program: str, *args: str, key: str = "child", cap_bytes: int = 2**20
    ) -> ChildSpec:
        path = str(self.output(key))
        return ChildSpec(
            key,
            self.argv(program, *args),
            self.env,
            str(self.folder),
            path,
            path,
            output_cap_bytes=cap_bytes,
        )

    def wait_for(self, *names: str) -> None:
        """Return when all of `names` have announced themselves."""
        until = time.monotonic() + PATIENCE_S
        while not self.pids.keys() >= set(names):
            assert select.select([self._fifo], [], [], until - time.monotonic())[0], (
                f"only {sorted(self.pids)} of {names} came"
            )
            *lines, self._unread = (self._unread + os.read(self._fifo, 65536)).split(b"\n")
            for line in lines:
                name, pid = line.decode().split()
                self.pids[name] = int(pid)

    def alive(self) -> list[int]:
        """Return who lives of all that were started with our mark in their environment, however
        far they have strayed.
        """
        mark = f"TRAINPROBE_TEST_MARK={self.mark}".encode()
        marked = {
            pid
            for pid in listed_pids()
            if mark in read_file(f"/proc/{pid}/environ", 2**20).split(b"\0")
        }
        stats = {pid: read_stat(pid) for pid in marked | set(self.pids.values())}
        return [pid for pid, found in stats.items() if found is not None and not found.dead]

    def until(self, true: Callable[[], bool], keeper: Keeper | None = None) -> bool:
        """Say whether `true` comes true in time; meanwhile `keeper` tells its news."""
        deadline = time.monotonic() + PATIENCE_S
        while not true():
            if time.monotonic() > deadline:
                return False
            if keeper is None:
                time.sleep(0.01)
            else:
                keeper.wait(0.05)
        return True


def wait_for_end(keeper: Keeper, *keys: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while any(keeper.children[key].ended is None for key in keys):
        assert time.monotonic() < until, "it did not end"
        keeper.wait(1)
