"""Check programs that no signal could end: while one of them lives, no other is started on this
host.

Each run keeps a small file in memory that lists its processes, and removes it when all of them have
ended. So the next run knows what hangs in the kernel, even if this run was killed. A file counts
only if it is a regular file of this user, made in this boot and this pid namespace; links are not
followed.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainprobe.system.proc import read_file, read_stat

PREFIX = "trainprobe-checks-"
IN_MEMORY = (
    "/dev/shm",  # noqa: S108 - a memory file system, where a full disk does not matter
    "/run/lock",
)
MOST_BYTES = 2**16
OF_ROOT = "/run"  # nobody else can fill it with files of this name
EMPTY_S = 3600.0
MOST_FILES, MOST_NAMES = 64, 4096


@dataclass(frozen=True)
class Left:
    """A process that an earlier run, begun at Unix time `since`, could not end."""

    pid: int
    check: str
    since: float


def still_there(folders: Sequence[str] | None = None) -> list[Left]:
    """Return the stuck processes of this user's earlier runs; remove the files of runs that left
    none.
    """
    found: list[Left] = []
    for folder in folders if folders is not None else _folders():
        try:
            names = sorted(
                name for name in os.listdir(folder) if name.startswith(f"{PREFIX}{os.getuid()}-")
            )
        except OSError:
            continue
        paths = [
            path for name in names[:MOST_NAMES] if _is_ours(path := os.path.join(folder, name))
        ]
        for path in paths[:MOST_FILES]:
            rows = _rows(path)
            if rows is None:
                _forget_empty(path)
            if rows is None or _alive(*rows[0]):  # not ours, or a run that is still at work
                continue
            left = [
                Left(pid, check, since)
                for pid, ticks, check, since in rows[1]
                if _alive(pid, ticks)
            ]
            found += left
            if not left:
                with contextlib.suppress(OSError):
                    os.unlink(path)
    return found


class Marker:
    """The file of one run. The checks go on where none can be written."""

    def __init__(self, folders: Sequence[str] | None = None) -> None:
        self._path, self._fd, self._written = "", -1, b""
        self._began = time.time()
        own = read_stat(os.getpid())
        self._head = {
            "pid": os.getpid(),
            "ticks": own.started_ticks if own else 0,
            "space": _space(),
            "began": self._began,
        }
        for folder in folders if folders is not None else _folders():
            path = os.path.join(
                folder, f"{PREFIX}{os.getuid()}-{os.getpid()}-{time.monotonic_ns()}"
            )
            with contextlib.suppress(OSError):
                self._fd = os.open(
                    path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
                )
                self._path = path
                break

    def tell(self, alive: Mapping[int, tuple[int, str]]) -> None:
        """Write the live processes below us: {pid: (started_ticks, check program)}."""
        rows = [
            {"pid": pid, "ticks": ticks, "check": check}
            for pid, (ticks, check) in sorted(alive.items())
        ]
        text = json.dumps({**self._head, "below": rows}).encode()[:MOST_BYTES]
        if self._fd < 0 or text == self._written:
            return
        with contextlib.suppress(OSError):
            os.pwrite(self._fd, text, 0)
            os.ftruncate(self._fd, len(text))
            self._written = text

    def close(self, left: Mapping[int, tuple[int, str]]) -> None:
        """End the run: remove the file, or leave it with the processes that could not be ended."""
        if self._fd < 0:
            return
        if left:
            self._head["ticks"] = -1  # the run is over, even if its process lives on
            self.tell(left)
        else:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        os.close(self._fd)
        self._fd = -1


def _forget_empty(path: str) -> None:
    """Remove the empty file of a run that was killed before it wrote."""
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        if (
            stat.S_ISREG(found.st_mode)
            and not found.st_size
            and time.time() - found.st_mtime > EMPTY_S
        ):
            os.unlink(path)


def _is_ours(path: str) -> bool:
    """Others may use our names for their files, to keep us from reaching ours."""
    try:
        return os.lstat(path).st_uid == os.getuid()
    except OSError:
        return False


def _folders() -> list[str]:
    first = (OF_ROOT,) if os.getuid() == 0 else ()
    last = "/tmp"  # noqa: S108 - a job's own TMPDIR is another one in the next job
    if os.environ.get("TMPDIR") is None:
        with contextlib.suppress(OSError):  # there is no folder that can be written
            last = tempfile.gettempdir()
    return [folder for folder in dict.fromkeys((*first, *IN_MEMORY, last)) if os.path.isdir(folder)]


def _space() -> str:
    boot = read_file("/proc/sys/kernel/random/boot_id", 64).decode("ascii", "replace").strip()
    try:
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return boot


def _alive(pid: int, ticks: int) -> bool:
    stats = read_stat(pid)
    return stats is not None and stats.started_ticks == ticks and not stats.dead


def _rows(path: str) -> tuple[tuple[int, int], list[tuple[int, int, str, float]]] | None:
    """Return (pid and start of the run, its processes); None for a file that may not be ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            return None
        try:
            row: dict[str, object] = json.loads(file.read(MOST_BYTES))
            below = row["below"]
            if row["space"] != _space() or not isinstance(below, list):
                return None
            since = float(str(row["began"]))
            return (int(str(row["pid"])), int(str(row["ticks"]))), [
                (int(each["pid"]), int(each["ticks"]), str(each["check"])[:100], since)
                for each in below
            ]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
