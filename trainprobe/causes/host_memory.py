"""Signs that the memory of the host ran out: who was killed, what says so, what was refused."""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import Said
from trainprobe.causes.words import size
from trainprobe.facts import LogEvent, RankEnding
from trainprobe.model.diagnosis import Weighing

# Python, the C++ library and torch's CPU allocator when the system refuses memory.
REFUSED = (
    r"\bMemoryError\b|std::bad_alloc|DefaultCPUAllocator: (can't|not enough memory)|C10 Out of Memory|[Cc]annot allocate memory"
    r"|worker .* is killed by signal: Killed|Unable to allocate [\d.]+ [KMGTP]?i?B for an array|SIGKILL\(-9\)"
    r"|ray\.exceptions\.OutOfMemoryError|killed due to the node running low on memory"
)
# Of these, the ones that an exception's own text may bear and that leave no doubt.
WORDING = (
    r"^\S{0,60}MemoryError\b|DefaultCPUAllocator: (?:can't|not enough memory)|C10 Out of Memory|worker .* is killed by signal: Killed|SIGKILL\(-9\)"
    r"|ray\.exceptions\.OutOfMemoryError|killed due to the node running low on memory"
)
FULL = 0.95  # of the limit: from here on the kernel reclaims, then kills
# Events of signatures/ in which a scheduler or a person ends the job.
CANCELLED = ("preempted", "requeued")


def killed(scene: Scene) -> tuple[RankEnding, ...]:
    """The suspects that SIGKILL ended, sent neither by us nor by the launcher."""
    own = [end for end in scene.endings(scene.suspects) if not (end.by_us or end.by_launcher)]
    return tuple(end for end in own if end.how == "oom_killed" or (end.how == "signalled" and end.signal_name == "SIGKILL"))


def proof(scene: Scene) -> LogEvent | None:
    """A line of the kernel, the scheduler or the container's runtime about a kill for memory. One of the kernel with a pid must name one of the job's."""
    pids = {end.pid for end in scene.endings(scene.world) if end.pid}
    for event in scene.events("oom-killer", "evicted"):
        if event.event == "evicted" and event.captured.get("resource") != "memory":
            continue
        pid = event.captured.get("pid") or event.captured.get("victim")
        if pid is None or not pids or int(pid) in pids:
            return event
    return None


def heard_kill(scene: Scene) -> LogEvent | None:
    """A line that says that some process of the job got SIGKILL or is gone, or that the shell printed of it."""
    return next(iter(scene.events("sigkill", "worker-sigkill", "actor-died", "child-died")), None)


def limit_of(scene: Scene) -> float | None:
    """The limit of the job's memory in bytes, as it was read or as somebody told it."""
    if scene.memory is not None and scene.memory.limit_bytes:
        return scene.memory.limit_bytes
    given = scene.given("memory.limit_bytes")
    return given.number if given is not None else None


def pressure(scene: Scene, refused: Said | None) -> Iterator[Weighing]:
    """What the cgroup counted and how full it was."""
    memory, ends = scene.memory, killed(scene)
    rise = memory.oom_kill_rise if memory is not None else None
    if rise is None:
        rise = next((end.oom_rise for end in ends if end.oom_rise is not None), None)
    if rise:
        yield weighing(13, "host-pressure", f"The cgroup counted {rise} out-of-memory kills in this run", memory)
    elif rise == 0:
        yield weighing(-26 if refused is None else -6, "host-pressure", "The cgroup's count of out-of-memory kills did not rise", memory, *ends)
    if memory is not None and memory.limit_bytes and (memory.peak_bytes or 0) >= FULL * memory.limit_bytes:
        yield weighing(6, "host-pressure", f"Memory use peaked at {size(memory.peak_bytes)} of {size(memory.limit_bytes)}", memory)
