"""When main threads ran, by the kernel's count of their processor time, read fifty times a second.

Samples of stacks miss what takes less than their interval, such as the work between two long waits;
this count misses nothing. A read takes some 15 microseconds and does not touch the process.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Dict, List, Optional, Sequence, Type

from trainprobe.collect import procfs

EACH_S = 0.02
RAN_NS = 1_000_000
"""A thread that is woken in a wait and sleeps on has run for less: 0.1 ms on gloo."""
SHORT_S = 0.3
"""Who runs for longer at a time is seen in samples, or spins in its wait."""
MOMENTS_CAP = 500


class RunTimes:
    """While it is entered, watches the main threads of `pids`. Where the kernel does not count,
    there are no moments.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = tuple(pids)
        self._ends = threading.Event()
        self._moments: Dict[int, List[float]] = {pid: [] for pid in pids}

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

    def _watch(self) -> None:
        before: Dict[int, int] = {}
        since: Dict[int, float] = {}
        while not self._ends.wait(EACH_S):
            for pid in self._pids:
                now, page = time.time(), procfs.read_page(f"/proc/{pid}/task/{pid}/schedstat")
                ran, _ = procfs.parse_schedstat(page or "")
                if ran is None:
                    continue
                if ran - before.get(pid, ran) >= RAN_NS:
                    since.setdefault(pid, now)
                elif pid in since:
                    began, found = since.pop(pid), self._moments[pid]
                    if now - began <= SHORT_S and len(found) < MOMENTS_CAP:
                        found.append(began)
                before[pid] = ran
