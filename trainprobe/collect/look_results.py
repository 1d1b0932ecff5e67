"""The result of a look, before it is evidence; looks side by side under one deadline."""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Optional, Sequence, Tuple

from trainprobe.model.evidence import Evidence, LookOutcome
from trainprobe.model.subjects import Subject

if TYPE_CHECKING:
    from trainprobe.case import Case


@dataclass(frozen=True)
class LookResult:
    """A look: its data, or the reason why there is none. `began` is Unix time in seconds.

    A collector may set `subject` (else the host), `kind` (else its own) and `files`, names of
    files within the case.
    """

    data: Mapping[str, Any] = field(default_factory=dict)
    outcome: LookOutcome = "ok"
    reason: str = ""
    began: float = 0.0
    took_s: float = 0.0
    source: str = ""
    subject: Optional[Subject] = None
    kind: str = ""
    files: Tuple[str, ...] = ()

    def at(self, began: float, took_s: float) -> LookResult:
        return dataclasses.replace(self, began=began, took_s=took_s)


def refused(outcome: LookOutcome, reason: str, **data: Any) -> LookResult:
    return LookResult(data=data, outcome=outcome, reason=reason)


def timed(look: Callable[[], LookResult]) -> LookResult:
    """Run one look and time it. A fault of the look itself becomes its result."""
    began, clock = time.time(), time.monotonic()
    try:
        result = look()
    except Exception as error:  # noqa: BLE001 - the boundary where a look's own fault turns into evidence
        result = refused("crashed", f"the look itself failed: {type(error).__name__}: {error}")
    return result.at(began, time.monotonic() - clock)


def side_by_side(
    looks: Sequence[Callable[[], LookResult]], deadline_s: float, at_once: int = 16
) -> List[LookResult]:
    """Make all looks, at most `at_once` at a time, and return what they saw in the order given.

    The threads are daemons and are left behind at the deadline: a read of /proc can itself hang
    when the target hangs in the kernel. What such a thread still brings home is dropped, so that
    nothing is written after this function has returned.
    """
    began, ends = time.time(), time.monotonic() + deadline_s
    waiting: queue.SimpleQueue[Tuple[int, Callable[[], LookResult]]] = queue.SimpleQueue()
    done: queue.SimpleQueue[Tuple[int, LookResult]] = queue.SimpleQueue()
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
    found: List[Optional[LookResult]] = [None] * len(looks)
    for _ in looks:
        try:
            place, result = done.get(timeout=max(0.0, ends - time.monotonic()))
        except queue.Empty:
            break
        found[place] = result
    late = LookResult(
        outcome="timed_out",
        reason=f"the look did not come back within {deadline_s:g} s",
        began=began,
        took_s=deadline_s,
    )
    return [late if result is None else result for result in found]


def record(
    case: Case,
    kind: str,
    result: LookResult,
    *,
    subject: Subject,
    cell: str,
    source: str = "",
    files: Sequence[str] = (),
) -> Evidence:
    """Append a look to the case. The kind, subject and files of the result itself go first."""
    return case.add(
        result.kind or kind,
        subject=result.subject or subject,
        cell=cell,
        source=result.source or source,
        began=result.began,
        took_s=result.took_s,
        outcome=result.outcome,
        reason=result.reason,
        data=dict(result.data),
        files=result.files or tuple(files),
    )
