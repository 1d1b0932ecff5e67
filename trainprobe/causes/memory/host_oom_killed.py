"""The kernel, or the cgroup's limit, kills a process for lack of memory.

A rank that keeps every output, a model loaded once per rank, loader workers that each hold the data: the memory of the host or of the
container runs out and the kernel ends a process with SIGKILL. There is no traceback. When another rank is killed than the one that
grew, memory is still the cause.

It is recognised by SIGKILL that nobody sent together with a rise of the cgroup's count of out-of-memory kills, or by the kernel's line
that names the pid. A count that was looked at and did not rise rules it out, unless Python itself reported a lack of memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said
from trainprobe.causes.words import fix, sentence, short, size, subject
from trainprobe.facts import Facts, OomKill, RankEnding
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# Python, the C++ library and torch's CPU allocator when the system refuses memory.
REFUSED = r"\bMemoryError\b|std::bad_alloc|DefaultCPUAllocator: (can't|not enough memory)|Cannot allocate memory|worker .* is killed by signal: Killed"
FULL = 0.95  # of the limit: from here on the kernel reclaims, then kills


def _killed(scene: Scene) -> tuple[RankEnding, ...]:
    own = [end for end in scene.endings(scene.suspects) if not (end.by_us or end.by_launcher)]
    return tuple(end for end in own if end.how == "oom_killed" or (end.how == "signalled" and end.signal_name == "SIGKILL"))


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    killed, memory = _killed(scene), scene.memory
    refused = said(scene, REFUSED)
    if not killed and refused is None:
        return
    for end in killed:
        line = next((fact for fact in facts.of(OomKill) if fact.pid and fact.pid == end.pid), None)
        if line is not None:
            yield weighing(26, "kernel-log", f"The kernel log says that pid {line.pid} was killed for lack of memory, with {size(line.rss_bytes)}", line)
        if end.how == "oom_killed" or (end.oom_rise or 0) > 0:
            yield weighing(26, "exit-status", f"Rank {end.rank} got SIGKILL, and the count of out-of-memory kills rose by {end.oom_rise or 1}", end)
        else:
            yield weighing(6, "exit-status", f"Rank {end.rank} got SIGKILL, and nobody of the job sent it", end)
    if refused is not None:
        yield weighing(10, "suspects-log", f"Memory could not be had: {short(refused.text)}", refused.fact)
    rise = memory.oom_kill_rise if memory is not None else None
    if rise is None:
        rise = next((end.oom_rise for end in killed if end.oom_rise is not None), None)
    if rise:
        yield weighing(13, "host-pressure", f"The cgroup counted {rise} out-of-memory kills in this run", memory)
    elif rise == 0 and refused is None:
        yield weighing(-26, "host-pressure", "The cgroup's count of out-of-memory kills did not rise", memory, *killed)
    elif rise == 0:
        yield weighing(-6, "host-pressure", "The cgroup's count of out-of-memory kills did not rise", memory)
    if memory is not None and memory.limit_bytes and (memory.peak_bytes or 0) >= FULL * memory.limit_bytes:
        yield weighing(6, "host-pressure", f"Memory use peaked at {size(memory.peak_bytes)} of {size(memory.limit_bytes)}", memory)
    yield from first_to_fail(scene, 3)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    memory, end = scene.memory, next(iter(_killed(scene)), None)
    pid = f" (pid {end.pid})" if end is not None and end.pid else ""
    limit = f", whose limit is {size(memory.limit_bytes)}" if memory is not None and memory.limit_bytes else ""
    place = "of its cgroup" if limit else "of the host"
    what = "was killed by the kernel because the memory" if end is not None else "could get no more of the memory"
    end_words = " ran out" if end is not None else ""
    return sentence(f"{subject(scene)}{pid} {what} {place}{limit}{',' if limit and end_words else ''}{end_words}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    memory = scene.memory
    now = f" (now {size(memory.limit_bytes)})" if memory is not None and memory.limit_bytes else ""
    return (
        fix(
            scene,
            "See what grows",
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, 'MiB') once per step on each rank",
            "look for lists that keep tensors or outputs of every step; append loss.item(), not loss",
        ),
        fix(scene, "Hold less", "fewer loader workers, memory-mapped data, no CPU offload, weights loaded once per node"),
        fix(
            scene,
            f"Give the job more memory{now}",
            "sbatch --mem=…, docker run --memory=…, or resources.limits.memory in Kubernetes",
            who="admin",
            risk="needs-admin",
        ),
    )


CAUSE = Cause(
    id="host-oom-killed",
    title="The kernel killed a process for lack of memory",
    means="The kernel or the cgroup's limit kills a process because memory ran out.",
    telling="SIGKILL that nobody sent with a rise of the out-of-memory count, or the kernel's line with the pid.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="dmesg | grep -i 'killed process', and memory.events of the job's cgroup",
)
