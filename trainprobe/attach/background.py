"""Looks that go on while the stacks are taken: a thread and a deadline for each."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from trainprobe.case import Case
from trainprobe.collect.collector import JobView, collect, every_collector
from trainprobe.collect.look_results import LookResult, record, refused
from trainprobe.collect.members import Member, host_subject


class BackgroundLooks:
    """Looks under way, in daemon threads: one that hangs in the kernel is left behind."""

    def __init__(self, case: Case, cell: str, job: Mapping[str, Any]) -> None:
        self._case, self._cell, self._job = case, cell, job
        self._made: Counter[str] = Counter()
        self._under_way: list[tuple[str, threading.Thread, float, float]] = []

    def start_round(self, name: str, members: Sequence[Member]) -> None:
        """Start each collector that belongs to this round of the attach, and return at once."""
        for collector in every_collector():
            if name in collector.rounds:
                self._made[collector.kind] += 1
                job = JobView(members, self._job, self._made[collector.kind], self._cell)
                self.start(collector.kind, partial(collect, self._case, collector, job))

    def start(self, kind: str, look: Callable[[], object]) -> None:
        """Start a look that writes its own records of this kind, and return at once."""
        thread = threading.Thread(
            target=self._run, args=(kind, look), name=f"trainprobe-{kind}", daemon=True
        )
        self._under_way.append((kind, thread, time.time(), time.monotonic()))
        thread.start()

    def finish(self, deadline_s: float) -> None:
        """Wait for them; record one `timed_out` for each that outlives `deadline_s`."""
        ends = time.monotonic() + deadline_s
        for kind, thread, began, clock in self._under_way:
            thread.join(max(0.0, ends - time.monotonic()))
            if thread.is_alive():
                took_s = time.monotonic() - clock
                late = refused("timed_out", f"the look did not come back within {took_s:.1f} s")
                self._record(kind, late.at(began, took_s))
        self._under_way = []

    def _run(self, kind: str, look: Callable[[], object]) -> None:
        try:
            look()
        except Exception as error:  # noqa: BLE001 - the boundary where a look's own fault turns into evidence
            self._record(
                kind, refused("crashed", f"the look itself failed: {type(error).__name__}: {error}")
            )

    def _record(self, kind: str, result: LookResult) -> None:
        record(self._case, kind, result, subject=host_subject(), cell=self._cell)
