"""The scheduler's clocks: `se.exec_start` of a thread is told in the clock of the CPU that it last
ran on.

Each CPU has one of its own, from which the time that a hypervisor or interrupts took is left out
(rq_clock_task in kernel/sched/core.c). On a busy virtual machine two of them were a minute apart,
so that what one says must never be held against another. What a CPU's clock says now is what
/proc/thread-self/sched says of ourselves, when we run there.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import Callable, Dict, Optional

FRESH_S = 1.0  # a clock falls behind by what is taken from its CPU meanwhile


class SchedulerClocks:
    """Reads each CPU's clock once a second at most, by our own `se.exec_start` (ms)."""

    def __init__(self, last_ran: Callable[[], Optional[float]]) -> None:
        self._last_ran = last_ran
        self._offsets: Dict[int, float] = {}
        self._read_at: Dict[int, float] = {}
        self._lock = threading.Lock()

    def ago_s(self, last_ran_ms: float, cpu: Optional[int]) -> Optional[float]:
        """Return how long ago `last_ran_ms` on the clock of `cpu` was, in seconds.

        Where that CPU may not be visited, or is not known, the least that any known clock says: a
        wait is rather told too short than too long. None where no clock can be read.
        """
        now = time.monotonic()
        own = self._offset(cpu)
        if own is None:
            with self._lock:
                known = list(self._offsets.values())
            own_clocks = self._read()
            own = max([*known, *([own_clocks] if own_clocks is not None else [])], default=None)
        return None if own is None else max(0.0, now - own - last_ran_ms / 1000)

    def _offset(self, cpu: Optional[int]) -> Optional[float]:
        """Monotonic time minus the clock of `cpu`, in seconds."""
        if cpu is None or cpu < 0:
            return None
        with self._lock:
            if time.monotonic() - self._read_at.get(cpu, -FRESH_S) < FRESH_S:
                return self._offsets.get(cpu)
        found = self._visited(cpu)
        with self._lock:
            self._read_at[cpu] = time.monotonic()
            if found is not None:
                self._offsets[cpu] = found
            else:
                self._offsets.pop(cpu, None)
        return found

    def _visited(self, cpu: int) -> Optional[float]:
        """Run on `cpu` for a moment, this thread alone."""
        try:
            before = os.sched_getaffinity(0)
            if cpu not in before:
                return None
            os.sched_setaffinity(0, {cpu})
        except (OSError, AttributeError):
            return None
        try:
            return self._read()
        finally:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, before)

    def _read(self) -> Optional[float]:
        now_ms = self._last_ran()
        return None if now_ms is None else time.monotonic() - now_ms / 1000
