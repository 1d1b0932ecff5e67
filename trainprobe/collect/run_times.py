"""When main threads had work to do, by the kernel's count of their time on a processor and of their
wait for one, read fifty times a second.

Samples of stacks miss what takes less than their interval, such as the work between two long waits;
this count misses nothing, on a crowded machine either. A read takes some 15 microseconds and does
not touch the process.
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
"""Of the time between two reads: who ran, or was ready to run, for as much of it computed."""
MOMENTS_CAP = 500


class RunTimes:
    """While it is entered, watches the main threads of `pids`. Where the kernel does not count,
    there are no moments.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = tuple(pids)
        self._ends = threading.Event()
        self._ran: Dict[int, List[Tuple[float, float]]] = {pid: [] for pid in pids}
        self._busy: Dict[int, List[Tuple[float, float]]] = {pid: [] for pid in pids}
        self._read_at: Dict[int, float] = {}

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
        it (Unix times in seconds, in order). That it waited for a processor in between ends none.
        """
        read_at = self._read_at.get(pid, 0.0)
        return [
            start
            for start, end in self._ran.get(pid, ())
            if end < read_at and end - start <= SHORT_S
        ]

    def busy(self, pid: int) -> List[Tuple[float, float]]:
        """From when to when the thread ran, or waited for a processor to run on, for half of the
        time or more, in order (Unix times).
        """
        return list(self._busy.get(pid, ()))

    def _watch(self) -> None:
        counts: Dict[int, Tuple[int, int]] = {}
        while not self._ends.wait(EACH_S):
            for pid in self._pids:
                now, page = time.time(), procfs.read_page(f"/proc/{pid}/task/{pid}/schedstat")
                ran, queued = procfs.parse_schedstat(page or "")
                if ran is None or queued is None:
                    continue
                last = self._read_at.get(pid, now)
                last_ran, last_queued = counts.get(pid, (ran, queued))
                self._read_at[pid], counts[pid] = now, (ran, queued)
                if ran - last_ran < RAN_NS:
                    continue
                ready_s = (ran - last_ran + queued - last_queued) / 1e9
                # A wait for a processor is counted when it ends, and may be older than `last`.
                since = min(last, now - ready_s)
                _note(self._ran[pid], since, now - ready_s, now)
                if ready_s >= BUSY_SHARE * (now - last):
                    _note(self._busy[pid], since, since, now)


def _note(spans: List[Tuple[float, float]], since: float, began: float, ended: float) -> None:
    """Add a span, or make the last one longer where the new one follows it at `since`."""
    if spans and since - spans[-1][1] < EACH_S / 2:
        spans[-1] = (spans[-1][0], ended)
    elif len(spans) < MOMENTS_CAP:
        spans.append((began, ended))
