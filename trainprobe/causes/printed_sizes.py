"""Sizes of tensors that a job printed, against the call that never ended: NCCL compares none."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trainprobe.causes.collective_timeouts import Timeouts
from trainprobe.facts import CollectiveCall, LogEvent

PRINTED = "tensor-size"
LEAST = 64  # elements: smaller numbers are met by chance
BEHIND = 60  # lines between the first print and the call


@dataclass(frozen=True)
class PrintedSizes:
    """`one` is as large as what was passed to `call`, `other` says another size of the same.
    `each`: it was printed as often as the gathering call has ranks, so by each of them once.
    """

    call: CollectiveCall
    one: LogEvent
    other: LogEvent
    each: bool

    @property
    def says(self) -> str:
        return (
            f"{self.one.captured['dims']} ({self.one.seen_at}) is what the call was given, and"
            f" {self.other.captured['dims']} ({self.other.seen_at}) was printed of the same"
        )


def printed_sizes(timeouts: Timeouts) -> PrintedSizes | None:
    """Of the lines just before a call that timed out."""
    for call in timeouts.calls:
        size = call.numel_in or 0
        near = [
            event
            for event in timeouts.events(PRINTED)
            if 0 <= (call.place or 0) - (event.place or 0) <= BEHIND
        ]
        for one in near if size >= LEAST else ():
            name, dims = one.captured.get("name", "").strip(), _dims(one)
            cut = next((n for n in range(len(dims)) if math.prod(dims[n:]) == size), None)
            if cut is None:
                continue
            alike = [
                event
                for event in near
                if event.captured.get("name", "").strip() == name and len(_dims(event)) == len(dims)
            ]
            ranks = (call.numel_out or 0) / size
            for other in alike:
                if math.prod(_dims(other)[cut:]) != size:
                    times = sum(event.count for event in alike)
                    return PrintedSizes(call, one, other, times == ranks)
    return None


def _dims(event: LogEvent) -> tuple[int, ...]:
    return tuple(int(word) for word in event.captured.get("dims", "").split(",") if word.strip())
