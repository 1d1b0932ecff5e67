"""What one look brought back, before it becomes evidence; and looks made side by side under one deadline."""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

from trainprobe.case import Case
from trainprobe.model.evidence import Evidence, LookOutcome
from trainprobe.model.subjects import Subject


@dataclass(frozen=True)
class Seen:
    """A look: its data, or the reason why there is none. `began` is Unix time in seconds."""

    data: Mapping[str, Any] = field(default_factory=dict)
    outcome: LookOutcome = "ok"
    reason: str = ""
    began: float = 0.0
    took_s: float = 0.0
    source: str = ""


def refused(outcome: LookOutcome, reason: str, **data: Any) -> Seen:
    return Seen(data=data, outcome=outcome, reason=reason)


def timed(look: Callable[[], Seen]) -> Seen:
    """Run one look and time it. A fault in the look itself is evidence too: gathering goes on without it."""
    began, clock = time.time(), time.monotonic()
    try:
        seen = look()
    except Exception as error:  # noqa: BLE001 - the boundary where a look's own fault turns into evidence
        seen = refused("crashed", f"the look itself failed: {type(error).__name__}: {error}")
    return dataclasses.replace(seen, began=began, took_s=time.monotonic() - clock)


def side_by_side(looks: Sequence[Callable[[], Seen]], deadline_s: float, at_once: int = 16) -> List[Seen]:
    """Make all looks, at most `at_once` at a time, and return what they saw in the order given.

    The threads are daemons and are left behind at the deadline: a read of /proc can itself hang when the target hangs in the kernel.
    What such a thread still brings home is dropped, so that nothing is written after this function has returned.
    """
    began, ends = time.time(), time.monotonic() + deadline_s
    waiting: queue.SimpleQueue[Tuple[int, Callable[[], Seen]]] = queue.SimpleQueue()
    done: queue.SimpleQueue[Tuple[int, Seen]] = queue.SimpleQueue()
    for place, look in enumerate(looks):
        waiting.put((place, look))

    def work() -> None:
        while time.monotonic() < ends:
            try:
                place, look = waiting.get_nowait()
            except queue.Empty:
                return
            done.put((place, timed(look)))

    for _ in range(min(len(looks), max(1, at_once))):
        threading.Thread(target=work, name="trainprobe-look", daemon=True).start()
    found: List[Optional[Seen]] = [None] * len(looks)
    for _ in looks:
        try:
            place, seen = done.get(timeout=max(0.0, ends - time.monotonic()))
        except queue.Empty:
            break
        found[place] = seen
    late = Seen(outcome="timed_out", reason=f"the look did not come back within {deadline_s:g} s", began=began, took_s=deadline_s)
    return [late if seen is None else seen for seen in found]


def record(case: Case, kind: str, seen: Seen, *, subject: Subject, cell: str, source: str = "", files: Sequence[str] = ()) -> Evidence:
    """Append what was seen to the case."""
    return case.add(
        kind,
        subject=subject,
        cell=cell,
        source=seen.source or source,
        began=seen.began,
        took_s=seen.took_s,
        outcome=seen.outcome,
        reason=seen.reason,
        data=dict(seen.data),
        files=tuple(files),
    )
