"""Threads that run Python beside a rank's main thread and take the interpreter lock from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainprobe.facts import Thread
from trainprobe.stacks.places import user_frame
from trainprobe.waits.activity import Watch

SHARE = 0.5  # of one CPU: who works now and then takes less
MAIN_SHARE = 0.5  # a main thread that gets more of it is not kept from its work
LEAST_S = 2.0
NOTICED = 0.05  # of one CPU: less is a thread that wakes now and then
OWNED = 0.3  # of the looks at the thread: two that run Python have the lock by turns


@dataclass(frozen=True)
class Rival:
    """The busiest of such threads; how much of one CPU they and the main thread took between the
    looks, and how many they are.
    """

    thread: Thread
    share: float
    main_share: float
    count: int = 1

    @property
    def where(self) -> str:
        frame = user_frame(self.thread.frames)
        return frame.where if frame is not None else ""

    @property
    def says(self) -> str:
        name = self.thread.name or f"thread {self.thread.os_thread_id}"
        at = f", at {self.where}" if self.where else ""
        who = (
            f"its thread {name}" if self.count == 1 else f"{self.count} threads, {name} among them"
        )
        return (
            f"{who}{at}, {'takes' if self.count == 1 else 'take'} {self.share:.0%} of a CPU and the"
            f" interpreter lock, and its main thread gets {self.main_share:.0%}"
        )


def interpreter_rival(watch: Watch, pid: int | None) -> Rival | None:
    """Those threads of a process that together take much of a CPU; None where it has none, or was
    watched too shortly. Threads of a pool take turns, so it is their sum that counts.
    """
    process = watch.processes.get(pid or 0)
    if process is None or process.cpu_s is None or (process.looked_s or 0.0) < LEAST_S:
        return None
    span_s = process.looked_s or 0.0
    main_share = process.cpu_s / span_s
    if main_share > MAIN_SHARE:
        return None
    threads = watch.threads.get(process.pid, ())
    looks = len({one.look for one in threads})
    used = {tid: used_s for tid, used_s in process.thread_cpu_s if used_s >= NOTICED * span_s}
    owned = [one for one in threads if one.os_thread_id in used and one.owns_gil]
    pool = {one.os_thread_id for one in threads if one.os_thread_id in used and _is_of(one, owned)}
    share = sum(used[tid] for tid in pool) / span_s
    if looks < 2 or share < SHARE or len({one.look for one in owned}) < OWNED * looks:
        return None
    return Rival(owned[-1], share, main_share, len(pool))


def _is_of(thread: Thread, owned: Sequence[Thread]) -> bool:
    """Whether it is one of those that had the lock, or of their pool by its name."""
    return any(
        thread.os_thread_id == one.os_thread_id
        or (_pool(thread.name) and _pool(thread.name) == _pool(one.name))
        for one in owned
    )


def _pool(name: str) -> str:
    """`ckpt-upload` of `ckpt-upload_1`, as executors and threading name the threads of one kind."""
    return name.rstrip("0123456789").rstrip("-_ (") if name[-1:].isdigit() else ""
