"""Looks that go on beside the stacks, each in a thread of its own with its own deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainprobe.case import Case
from trainprobe.collect.members import host_subject
from trainprobe.collect.seen import Seen, record, refused


@dataclass(frozen=True)
class Side:
    """One look: the kind of evidence that it brings, and what to call. It writes its records itself."""

    kind: str
    look: Callable[[], object]


class Beside:
    """Looks under way. They are daemons: one that hangs in the kernel is left behind, and the case says that it did not come back."""

    def __init__(self, case: Case, cell: str) -> None:
        self._case, self._cell = case, cell
        self._under_way: list[tuple[Side, threading.Thread, float, float]] = []

    def start(self, sides: Sequence[Side]) -> None:
        """Start them all and return at once."""
        for side in sides:
            thread = threading.Thread(target=self._run, args=(side,), name=f"trainprobe-{side.kind}", daemon=True)
            self._under_way.append((side, thread, time.time(), time.monotonic()))
            thread.start()

    def finish(self, deadline_s: float) -> None:
        """Wait for those under way, and record one `timed_out` for each that does not come back within `deadline_s`."""
        ends = time.monotonic() + deadline_s
        for side, thread, began, clock in self._under_way:
            thread.join(max(0.0, ends - time.monotonic()))
            if thread.is_alive():
                took_s = time.monotonic() - clock
                late = Seen(outcome="timed_out", reason=f"the look did not come back within {took_s:.1f} s", began=began, took_s=took_s)
                record(self._case, side.kind, late, subject=host_subject(), cell=self._cell)
        self._under_way = []

    def _run(self, side: Side) -> None:
        try:
            side.look()
        except Exception as error:  # noqa: BLE001 - the boundary where a look's own fault turns into evidence
            fault = refused("crashed", f"the look itself failed: {type(error).__name__}: {error}")
            record(self._case, side.kind, fault, subject=host_subject(), cell=self._cell)
