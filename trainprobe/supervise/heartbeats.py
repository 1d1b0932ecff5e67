"""Reads what ranks say of their steps (`trainprobe/heartbeat.py`)."""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from typing import NamedTuple

from trainprobe.heartbeat import (
    COUNT,
    COUNT_AT,
    FILE_BYTES,
    MAGIC,
    PHASE,
    PHASE_AT,
    RANK,
    RANK_AT,
    RING,
    RING_AT,
    STEP,
)

SHARED = "/dev/shm"  # noqa: S108 - memory, so that no disk of the job is written to
MOST_RANKS = 4096
PREFIX = "trainprobe-steps-"


class Beat(NamedTuple):
    """A step that a rank has said: its number, when (monotonic seconds), and the processor time
    of its thread until then.
    """

    step: int
    at: float
    cpu_s: float


@dataclass
class RankBeats:
    """One rank's file. `rank` is the number that its environment gave it, None without one; `phase`
    is empty while it trains.
    """

    mapped: mmap.mmap
    rank: int | None = None
    count: int = 0
    phase: str = ""
    phase_since: float = 0.0
    newest: list[Beat] = field(default_factory=list)

    def read(self) -> None:
        """Put the steps since the last reading into `newest`; a rank that is faster than the ring
        loses the oldest.
        """
        self.newest = []
        count = COUNT.unpack_from(self.mapped, COUNT_AT)[0]
        first = max(self.count + 1, count - RING + 2)  # the next write may overwrite the oldest
        for number in range(first, count + 1):
            step, at, cpu = STEP.unpack_from(self.mapped, RING_AT + number % RING * STEP.size)
            self.newest.append(Beat(step, at / 1e9, cpu / 1e9))
        self.count = count
        changes, since, name = PHASE.unpack_from(self.mapped, PHASE_AT)
        if changes % 2 == 0 and COUNT.unpack_from(self.mapped, PHASE_AT)[0] == changes:
            self.phase = name.rstrip(b"\0").decode("utf-8", "replace")
            self.phase_since = since / 1e9


class Heartbeats:
    """The files of all ranks of a run, by pid. `folder` is "" where none could be made."""

    def __init__(self) -> None:
        self.folder = ""
        self.ranks: dict[int, RankBeats] = {}
        self._listed = 0.0
        _clear_up()
        for place in (SHARED, tempfile.gettempdir()):
            with contextlib.suppress(OSError):
                self.folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place)
                break

    def read(self) -> None:
        """Read all files, also new ones."""
        if not self.folder:
            return
        with contextlib.suppress(OSError):
            changed = os.stat(self.folder).st_mtime
            if changed != self._listed:
                self._listed = changed
                for name in os.listdir(self.folder)[:MOST_RANKS]:
                    if name.isdecimal() and int(name) not in self.ranks:
                        self._open(int(name))
        for rank in self.ranks.values():
            rank.read()

    def forget(self, pid: int) -> None:
        """A rank is gone."""
        rank = self.ranks.pop(pid, None)
        if rank is not None:
            rank.mapped.close()
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self.folder, str(pid)))

    def close(self) -> None:
        for pid in list(self.ranks):
            self.forget(pid)
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _open(self, pid: int) -> None:
        path = os.path.join(self.folder, str(pid))
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return
        try:
            if os.fstat(fd).st_size >= FILE_BYTES and os.pread(fd, len(MAGIC), 0) == MAGIC:
                mapped = mmap.mmap(fd, FILE_BYTES, prot=mmap.PROT_READ)
                rank = RANK.unpack_from(mapped, RANK_AT)[0]
                self.ranks[pid] = RankBeats(mapped, rank if rank >= 0 else None)
            else:
                self._listed = 0.0  # it is being made
        finally:
            os.close(fd)


def _clear_up() -> None:
    """Remove what supervisors have left that were killed, once their jobs are gone too."""
    with contextlib.suppress(OSError):
        for name in os.listdir(SHARED):
            owner = name.removeprefix(PREFIX).partition("-")[0]
            path = os.path.join(SHARED, name)
            if not name.startswith(PREFIX) or _lives(owner) or os.stat(path).st_uid != os.geteuid():
                continue
            if not any(_lives(one) for one in os.listdir(path)):
                shutil.rmtree(path, ignore_errors=True)


def _lives(pid: str) -> bool:
    return os.path.exists(f"/proc/{pid}/stat") if pid.isdecimal() else False
