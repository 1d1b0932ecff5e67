"""What each rank did since the last sample, from two small files of /proc: some ten microseconds.

The descriptors stay open, and each read gives the newest numbers.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass

from trainprobe.collect import procfs

# Of the processor time that its main thread usually takes: a rank that takes less does not train.
# One that polls takes some thousandths of a second in each, and what is more than a twentieth of a
# processor is work, whatever it took before.
WORKING_SHARE, LEAST_SHARE, SURELY_SHARE = 0.1, 0.002, 0.05
# While it is looked at it wakes for the look, and may wait for a processor then.
LOOKED_AT_SHARE = 0.02
LEARNS_IN_S = 60.0
# Bytes read and written in one sample: a checkpoint or a data set, and no line of a log.
FILES_BYTES = 128 * 1024
TICK_NS = 10_000_000


@dataclass(frozen=True)
class Sample:
    """Of one rank. `share` is the processor time of its main thread, and the time that it waited
    for a processor, per second. `wrote` counts all bytes that it has written.
    """

    works: bool
    share: float
    wrote: int


class RankActivity:
    """One rank, by pid and start."""

    def __init__(self, pid: int, started_ticks: int) -> None:
        self.pid, self.started_ticks = pid, started_ticks
        self._sched = _open(f"/proc/{pid}/schedstat")
        self._io = _open(f"/proc/{pid}/io")
        self._usual, self._samples = 0.0, 0
        self._at = time.monotonic()
        self._ns, self._waited_ns, self._bytes, _ = self._read()

    def sample(self, at: float, *, looked_at: bool = False) -> Sample | None:
        """What it did since the last sample; None where it is gone. `looked_at`: while a look
        goes on, the rank works only by what that cannot have cost it.
        """
        ns, waited_ns, moved, wrote = self._read()
        if ns < 0:
            return None
        span_s = max(1e-3, at - self._at)
        ran = max(0, ns - self._ns) / 1e9 / span_s
        share = ran + max(0, waited_ns - self._waited_ns) / 1e9 / span_s
        works = ran >= max(self._least(), LOOKED_AT_SHARE) if looked_at else share >= self._least()
        works = works or moved - self._bytes >= FILES_BYTES
        if not looked_at:
            self._samples += 1
            weight = max(min(1.0, span_s / LEARNS_IN_S), 1 / (self._samples + 1))
            self._usual += weight * (share - self._usual)
        self._at, self._ns, self._waited_ns, self._bytes = at, ns, waited_ns, moved
        return Sample(works, share, wrote)

    @property
    def busy_s(self) -> float:
        """How long its main thread had run, or waited for a processor, at the last sample."""
        return (self._ns + self._waited_ns) / 1e9

    def close(self) -> None:
        for fd in (self._sched, self._io):
            if fd >= 0:
                os.close(fd)
        self._sched = self._io = -1

    def _least(self) -> float:
        return min(SURELY_SHARE, max(LEAST_SHARE, WORKING_SHARE * self._usual))

    def _read(self) -> tuple[int, int, int, int]:
        """Nanoseconds that its main thread ran, and waited for a processor; bytes moved, bytes
        written. -1 where it is gone.
        """
        ns = waited_ns = moved = wrote = 0
        words = _read(self._sched).split()
        if len(words) == 3:
            ns, waited_ns = int(words[0]), int(words[1])
        if ns == 0:  # a kernel that does not count it: ticks of 10 ms
            stat = procfs.stat(self.pid, self.pid)
            if stat is None or stat.started_ticks < self.started_ticks:
                return -1, 0, 0, 0
            ns = stat.cpu_ticks * TICK_NS
        lines = _read(self._io).split()
        if len(lines) > 3:  # rchar: N, wchar: N
            moved, wrote = int(lines[1]) + int(lines[3]), int(lines[3])
        return ns, waited_ns, moved, wrote


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _read(fd: int) -> bytes:
    if fd >= 0:
        with contextlib.suppress(OSError):
            return os.pread(fd, 512, 0)
    return b""
