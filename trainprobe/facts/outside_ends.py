"""A job that a scheduler or its user ended: what comes behind that line is an echo of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts.endings import RankEnding
from trainprobe.facts.log_events import LogEvent
from trainprobe.facts.log_failures import LogFailure

# Events of signatures/ in which a scheduler says that it ends the job.
OUTSIDE = frozenset({"preempted", "node-failed", "evicted", "requeued", "step-cancelled"})
# Echoes that a job's orderly end brings about by itself, in any order with the scheduler's line.
_STOPPING = frozenset({"step-cancelled", "launcher-stops", "stopped"})
# What torchrun raises where it was sent a signal; where a rank failed it is ChildFailedError.
_SIGNALLED = re.compile(r"(?:\w+\.)*SignalException\b")


def cancelled_from_outside(
    events: Sequence[LogEvent], failures: Sequence[LogFailure], endings: Sequence[RankEnding]
) -> LogEvent | None:
    """The line that says that a job or step was cancelled, where nothing had gone wrong before.

    Slurm prints the same line of a step that srun ends since one of its tasks failed, and of one
    that scancel ends.
    """
    first = min(
        (one for one in events if one.event == "step-cancelled"),
        key=lambda one: one.place or 0,
        default=None,
    )
    if first is None:
        return None
    place = first.place or 0
    before = any(
        not one.echo
        or (
            one.place < place
            and one.echo_of not in _STOPPING
            and not (one.what == "exception" and _SIGNALLED.match(one.kind))
        )
        for one in failures
    )
    # a process that ends by SIGTERM or with the code of a launcher that got it ended with the step
    ended = any(
        one.abnormal
        and (
            (one.place or 0) < place
            or (one.role == "rank" and one.signal not in (2, 9, 15) and not one.echo)
        )
        for one in endings
    )
    return None if before or ended else first


def behind_the_schedulers_end(failures: Sequence[LogFailure]) -> list[LogFailure]:
    """`failures` of which those behind a scheduler's plain statement are echoes of it."""
    own = [one for one in failures if not one.echo]
    first = min(own, key=lambda one: one.place, default=None)
    if first is None or first.what != "event" or first.kind not in OUTSIDE:
        return list(failures)
    return [
        replace(one, echo=True, echo_of="scheduler")
        if not one.echo and one is not first and one.kind not in OUTSIDE
        else one
        for one in failures
    ]
