"""Threads that run Python beside a rank's main thread and take the interpreter lock from it."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.facts import Thread
from trainprobe.stacks.places import user_frame
from trainprobe.waits.activity import Watch

SHARE = 0.5  # of one CPU: who works now and then takes less
MAIN_SHARE = 0.5  # a main thread that gets more of it is not kept from its work
LEAST_S = 2.0
OWNED = 0.3  # of the looks at the thread: two that run Python have the lock by turns


@dataclass(frozen=True)
class Rival:
    """A thread, and how much of one CPU it and the main thread took between the looks."""

    thread: Thread
    share: float
    main_share: float

    @property
    def where(self) -> str:
        frame = user_frame(self.thread.frames)
        return frame.where if frame is not None else ""

    @property
    def says(self) -> str:
        name = self.thread.name or f"thread {self.thread.os_thread_id}"
        at = f", at {self.where}" if self.where else ""
        return (
            f"its thread {name}{at}, takes {self.share:.0%} of a CPU and the interpreter lock, and"
            f" its main thread gets {self.main_share:.0%}"
        )


def interpreter_rival(watch: Watch, pid: int | None) -> Rival | None:
    """The busiest such thread of a process; None where it has none, or was watched too shortly."""
    process = watch.processes.get(pid or 0)
    if process is None or process.cpu_s is None or (process.looked_s or 0.0) < LEAST_S:
        return None
    span_s = process.looked_s or 0.0
    main_share = process.cpu_s / span_s
    if main_share > MAIN_SHARE:
        return None
    for tid, used_s in sorted(process.thread_cpu_s, key=lambda one: -one[1]):
        looks = [one for one in watch.threads.get(process.pid, ()) if one.os_thread_id == tid]
        owned = sum(one.owns_gil for one in looks)
        if used_s >= SHARE * span_s and len(looks) > 1 and owned >= OWNED * len(looks):
            return Rival(looks[-1], used_s / span_s, main_share)
    return None
