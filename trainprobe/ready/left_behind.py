"""Check programs that no signal could end: while one of them lives, no other is started on this host.

Each run keeps one small file in memory, with the processes that it has below it, and takes it away when all of them have ended. So what a run
leaves in the kernel is known to the next one, also where the run itself was killed. A file counts only if it is a plain one of this user, made
under this boot and in this pid namespace; nothing else is believed, and nothing is followed through a link.
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
IN_MEMORY = ("/dev/shm", "/run/lock")  # noqa: S108 - a memory file system, where a full disk does not matter
MOST_BYTES = 2**16
OF_ROOT = "/run"  # nobody else can fill it with files of this name
EMPTY_S = 3600.0
MOST_FILES, MOST_NAMES = 64, 4096


@dataclass(frozen=True)
class Left:
    """A process that an earlier run could not end. `since` is the Unix time at which that run began."""

    pid: int
    check: str
    since: float


def still_there(folders: Sequence[str] | None = None) -> list[Left]:
    """Return what earlier runs of this user have left on this host; files of runs of which nothing is left are taken away."""
    found: list[Left] = []
    for folder in folders if folders is not None else _folders():
        try:
            names = sorted(name for name in os.listdir(folder) if name.startswith(f"{PREFIX}{os.getuid()}-"))
        except OSError:
            continue
        paths = [path for name in names[:MOST_NAMES] if _is_ours(path := os.path.join(folder, name))]
        for path in paths[:MOST_FILES]:
            rows = _rows(path)
            if rows is None:
                _forget_empty(path)
            if rows is None or _alive(*rows[0]):  # not ours to judge, or a run that is at work just now
                continue
            left = [Left(pid, check, since) for pid, ticks, check, since in rows[1] if _alive(pid, ticks)]
            found += left
            if not left:
                with contextlib.suppress(OSError):
                    os.unlink(path)
    return found


class Marker:
    """The file of one run. Where none can be written there is none: the checks go on all the same."""

    def __init__(self, folders: Sequence[str] | None = None) -> None:
        self._path, self._fd, self._told = "", -1, b""
        self._began = time.time()
        own = read_stat(os.getpid())
        self._head = {"pid": os.getpid(), "ticks": own.started_ticks if own else 0, "space": _space(), "began": self._began}
        for folder in folders if folders is not None else _folders():
            path = os.path.join(folder, f"{PREFIX}{os.getuid()}-{os.getpid()}-{time.monotonic_ns()}")
            with contextlib.suppress(OSError):
                self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                self._path = path
                break

    def tell(self, alive: Mapping[int, tuple[int, str]]) -> None:
        """Write down who is below us now: {pid: (started_ticks, check program)}."""
        rows = [{"pid": pid, "ticks": ticks, "check": check} for pid, (ticks, check) in sorted(alive.items())]
        text = json.dumps({**self._head, "below": rows}).encode()[:MOST_BYTES]
        if self._fd < 0 or text == self._told:
            return
        with contextlib.suppress(OSError):
            os.pwrite(self._fd, text, 0)
            os.ftruncate(self._fd, len(text))
            self._told = text

    def close(self, left: Mapping[int, tuple[int, str]]) -> None:
        """The run is over: the file goes, or stays with what could not be ended."""
        if self._fd < 0:
            return
        if left:
            self._head["ticks"] = -1  # this run itself is at work no more, whether or not its process lives on
            self.tell(left)
        else:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        os.close(self._fd)
        self._fd = -1


def _forget_empty(path: str) -> None:
    """A run that was killed before its first word leaves an empty file, which nobody else takes away."""
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode) and not found.st_size and time.time() - found.st_mtime > EMPTY_S:
            os.unlink(path)


def _is_ours(path: str) -> bool:
    """Others may give their files our names, so that ours are not reached."""
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
    """Return (pid and start of the run, what was below it); None for a file that is not ours beyond doubt."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            return None
        try:
            told: dict[str, object] = json.loads(file.read(MOST_BYTES))
            below = told["below"]
            if told["space"] != _space() or not isinstance(below, list):
                return None
            since = float(str(told["began"]))
            return (int(str(told["pid"])), int(str(told["ticks"]))), [(int(row["pid"]), int(row["ticks"]), str(row["check"])[:100], since) for row in below]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
