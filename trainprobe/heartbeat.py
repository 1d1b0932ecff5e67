"""`trainprobe.step(i)` and `trainprobe.phase(name)`: where a rank is, for whoever supervises it.

A rank writes into a small file of its own that is mapped into memory: about a microsecond a call,
and no system call but the clock of its thread. Without a supervisor nothing happens at all. It
never raises and never waits.

The file: MAGIC, the rank (-1 where RANK does not say it), the count of steps, the phase, and a ring
of the newest steps. Numbers are little-endian; times are nanoseconds of CLOCK_MONOTONIC, which all
processes of a host share.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import time

TYPE_CHECKING = False  # importing typing would cost more than all of this file
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Callable, List, Optional, Tuple, Type

FOLDER = "TRAINPROBE_HEARTBEAT"
MAGIC = b"TPBEAT01"
RANK_AT, COUNT_AT, PHASE_AT, RING_AT = 8, 16, 64, 256
RANK = struct.Struct("<q")
COUNT = struct.Struct("<Q")
# The number of the change (odd while it is written), since when, and the name.
PHASE = struct.Struct("<Qq64s")
# Step, when it ended, and the processor time of its thread until then.
STEP = struct.Struct("<qqq")
RING = 256
FILE_BYTES = RING_AT + RING * STEP.size


class _Writer:
    """The file of this process."""

    def __init__(self, folder: str) -> None:
        path = os.path.join(folder, str(os.getpid()))
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(path, flags, 0o600)
        try:
            os.ftruncate(fd, FILE_BYTES)
            self.map = mmap.mmap(fd, FILE_BYTES)
        finally:
            os.close(fd)
        rank = os.environ.get("RANK", "")
        RANK.pack_into(self.map, RANK_AT, int(rank) if rank.isdecimal() and len(rank) < 9 else -1)
        self.map[: len(MAGIC)] = MAGIC
        self.count = 0
        self.phases: List[Tuple[str, int]] = []
        self.changes = 0

    def write_phase(self) -> None:
        name, since = self.phases[-1] if self.phases else ("", 0)
        self.changes += 2
        COUNT.pack_into(self.map, PHASE_AT, self.changes - 1)
        PHASE.pack_into(self.map, PHASE_AT, self.changes - 1, since, name.encode()[:64])
        COUNT.pack_into(self.map, PHASE_AT, self.changes)


def _writer() -> Optional[_Writer]:
    """The writer of this process, made at its first call; None where nobody reads."""
    global _made, _asked  # noqa: PLW0603 - one for each process
    if not _asked:
        _asked = True
        folder = os.environ.get(FOLDER)
        if folder:
            with contextlib.suppress(OSError, ValueError):
                _made = _Writer(folder)
    return _made


_made: Optional[_Writer] = None
_asked = False


def _first_step(number: Optional[int] = None) -> None:
    global _step  # noqa: PLW0603 - as above
    writer = _writer()
    _step = _nothing if writer is None else _stepper(writer)
    _step(number)


def _nothing(number: Optional[int] = None) -> None:
    """Nobody reads."""


def _stepper(writer: _Writer) -> Callable[[Optional[int]], None]:
    """A function with all that it needs at hand: it is called at every step."""
    mapped, pack_step, pack_count = writer.map, STEP.pack_into, COUNT.pack_into
    now, cpu = time.monotonic_ns, time.thread_time_ns

    def write(number: Optional[int] = None) -> None:
        writer.count = count = writer.count + 1
        place = RING_AT + count % RING * 24
        try:
            pack_step(mapped, place, count if number is None else number, now(), cpu())
        except (struct.error, TypeError, ValueError, OverflowError):  # no whole number
            with contextlib.suppress(struct.error, ValueError):
                pack_step(mapped, place, count, now(), cpu())
        pack_count(mapped, COUNT_AT, count)

    return write


_step: Callable[[Optional[int]], None] = _first_step


def step(number: Optional[int] = None) -> None:
    """Say that a training step is done. `number` is its number; without it the calls are counted.

    Call it once for each step of the optimizer, on every rank. Costs less than two microseconds,
    and nothing to speak of where the job does not run under `trainprobe run`.
    """
    _step(number)


class phase:  # noqa: N801 - it reads as a word: with trainprobe.phase("checkpoint")
    """Say that a rank does something else than training steps: `with trainprobe.phase("eval"):`.

    Phases may lie within each other. No step is missed while any rank is in one.
    """

    def __init__(self, name: str) -> None:
        self._name = str(name)

    def __enter__(self) -> phase:  # noqa: PYI034 - Self is newer than Python 3.9
        writer = _writer()
        if writer is not None:
            writer.phases.append((self._name, time.monotonic_ns()))
            writer.write_phase()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        writer = _writer()
        if writer is not None and writer.phases:
            writer.phases.pop()
            writer.write_phase()


def _forget() -> None:
    """A forked child is another process: its file is made when it says something itself."""
    global _made, _asked, _step
    _made, _asked, _step = None, False, _first_step


os.register_at_fork(after_in_child=_forget)
