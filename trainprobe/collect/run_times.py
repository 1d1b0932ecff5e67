"""When main threads ran, by the kernel's count of their processor time, read fifty times a second.

Samples of stacks miss what takes less than their interval, such as the work between two long waits;
this count misses nothing. A read takes some 15 microseconds and does not touch the process.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Dict, List, Optional, Sequence, Tuple, Type

from trainprobe.collect import procfs

EACH_S = 0.02
RAN_NS = 1_000_000
"""A thread that is woken in a wait and sleeps on has run for less: 0.1 ms on gloo."""
SHORT_S = 0.3
"""Who runs for longer at a time is seen in samples, or spins in its wait."""
BUSY_SHARE = 0.5
"""Of the time between two reads: who ran for as much of it computed."""
MOMENTS_CAP = 500


class RunTimes:
    """While it is entered, watches the main threads of `pids`. Where the kernel does not count,
    there are no moments.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = tuple(pids)
        self._ends = threading.Event()
        self._moments: Dict[int, List[float]] = {pid: [] for pid in pids}
        self._busy: Dict[int, List[Tuple[float, float]]] = {pid: [] for pid in pids}

    def __enter__(self) -> RunTimes:  # noqa: PYI034 - Self is newer than Python 3.9
        threading.Thread(target=self._watch, name="trainprobe-run-times", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._ends.set()

    def moments(self, pid: int) -> List[float]:
        """When the thread began to run for a moment, of a millisecond or more, and slept on after
        it: Unix times in seconds, in order.
        """
        return list(self._moments.get(pid, ()))

    def busy(self, pid: int) -> List[Tuple[float, float]]:
        """From when to when the thread ran for half of the time or more, in order (Unix times)."""
        return list(self._busy.get(pid, ()))

    def _note_busy(self, pid: int, began: float, ended: float) -> None:
        found = self._busy[pid]
        if found and began - found[-1][1] < EACH_S / 2:
            found[-1] = (found[-1][0], ended)
        elif len(found) < MOMENTS_CAP:
            found.append((began, ended))

    def _watch(self) -> None:
        before: Dict[int, int] = {}
        read_at: Dict[int, float] = {}
        since: Dict[int, float] = {}
        while not self._ends.wait(EACH_S):
            for pid in self._pids:
                now, page = time.time(), procfs.read_page(f"/proc/{pid}/task/{pid}/schedstat")
                ran, _ = procfs.parse_schedstat(page or "")
                if ran is None:
                    continue
                last = read_at.get(pid, now)
                if ran - before.get(pid, ran) >= BUSY_SHARE * (now - last) * 1e9 > 0:
                    self._note_busy(pid, last, now)
                read_at[pid] = now
                if ran - before.get(pid, ran) >= RAN_NS:
                    since.setdefault(pid, now)
                elif pid in since:
                    began, found = since.pop(pid), self._moments[pid]
                    if now - began <= SHORT_S and len(found) < MOMENTS_CAP:
                        found.append(began)
                before[pid] = ran
