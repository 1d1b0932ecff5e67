"""More threads want to run than the job may use CPUs.

Each rank starts a thread per CPU of the whole machine, loader workers come on top, and a container
or a job step may use a few CPUs only. Threads
then take turns, and everything crawls: the ranks, their data, the launcher's heartbeats.

It is recognised by a cgroup that is throttled between two looks, by the kernel's pressure of CPUs,
and by more threads in state R than CPUs that may be used. It is ruled out where CPUs stay free.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.child_processes import states
from trainprobe.causes.phrases import Fixes, fix
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import JobRank, Pressure, ProcessState
from trainprobe.facts.processes import (
    QUEUED,
    crowd_themselves,
    queued_share,
    threads_that_want_to_run,
)
from trainprobe.waits.interpreter_rivals import Rival, interpreter_rival

TIMES_OVER = 2.0  # threads that want to run, per CPU that may be used
SHARE_THROTTLED = 0.1  # of the time between the looks


def _pressures(scene: Scene) -> tuple[Pressure, ...]:
    return scene.of(Pressure)


def _weigh(scene: Scene) -> Weighings:
    pressures = _pressures(scene)
    throttled = [
        one for one in pressures if one.throttled and one.throttled_share >= SHARE_THROTTLED
    ]
    if throttled:
        one = throttled[0]
        quota = f" of {one.quota_cpus:g} CPUs" if one.quota_cpus else ""
        says = (
            f"The job's cgroup ran out of its quota{quota} {one.throttled} times between the looks"
        )
        yield weighing(13, "environment-and-limits", says, one)
    queued = queued_share(scene.process(rank) for rank in scene.world)
    # What waits beside the ranks, such as loader workers that start or others' jobs, takes nothing
    # from them.
    lost = queued is None or queued >= QUEUED
    pressed = [one for one in pressures if one.pressed and lost]
    if pressed:
        says = (
            f"Threads waited for a CPU in {pressed[0].cpu:.0f} % of the last 10 s"
            f" ({pressed[0].scope})"
        )
        yield weighing(10, "host-pressure", says, pressed[0])
    ranks = [scene.process(rank) for rank in scene.world]
    wanting = threads_that_want_to_run(scene.of(ProcessState)) if queued is not None else None
    crowded = [
        (one, runnable)
        for one in pressures
        for runnable in (one.runnable if wanting is None or one.host else wanting,)
        if lost
        and runnable
        and one.usable_cpus
        and (runnable >= TIMES_OVER * one.usable_cpus or crowd_themselves(ranks, one.usable_cpus))
    ]
    if crowded:
        one, runnable = crowded[0]
        says = f"{runnable:.0f} threads of the job want to run on {one.usable_cpus:g} CPUs"
        yield weighing(10, "process-state-and-locks", says, one)
    if crowded and queued is not None:
        says = f"The ranks' main threads could run and waited for a CPU in {queued:.0%} of the time"
        yield weighing(6, "suspects-stack", says, *states(scene, scene.world)[:3])
    rivals = _rivals(scene)
    if rivals and crowded:
        says = f"On every rank {rivals[0].says}"
        yield weighing(10, "process-state-and-locks", says, *(one.thread for one in rivals))
    if not (throttled or pressed or crowded):
        free = [
            one for one in pressures if one.cpu is not None and one.cpu < 5 and one.scope == "host"
        ]
        if free:
            says = f"CPUs are free: threads waited for one in {free[0].cpu:.0f} % of the last 10 s"
            yield weighing(-26, "host-pressure", says, free[0])
        return
    threads = sum(state.threads for state in states(scene, scene.world))
    usable = next((one.usable_cpus for one in pressures if one.usable_cpus), None)
    if usable and threads >= 8 * usable:
        says = f"The job has {threads} threads on {usable:g} usable CPUs"
        yield weighing(3, "environment-and-limits", says, *states(scene, scene.world)[:3])


def _rivals(scene: Scene) -> tuple[Rival, ...]:
    """The threads beside the main one that take the interpreter lock, where every rank has them."""
    found = []
    for rank in scene.world:
        process = scene.process(rank)
        rival = interpreter_rival(scene.watch, process.pid) if process is not None else None
        if rival is None:
            return ()
        found.append(rival)
    return tuple(found)


def _numbers(scene: Scene) -> str:
    one = next((one for one in _pressures(scene) if one.usable_cpus), None)
    ranks = len(scene.of(JobRank)) or len(scene.world)
    threads = sum(state.threads for state in states(scene, scene.world))
    usable = f"{one.usable_cpus:g} CPUs" if one is not None and one.usable_cpus else "its CPUs"
    return f"{ranks} ranks with {threads} threads in all on {usable}"


def _summary(scene: Scene) -> str:
    rivals = _rivals(scene)
    more = f"; on every rank {rivals[0].says}" if rivals else ""
    return f"More threads want to run than the job may use CPUs: {_numbers(scene)}{more}"


def _fixes(scene: Scene) -> Fixes:
    one = next((one for one in _pressures(scene) if one.usable_cpus), None)
    ranks = len(scene.of(JobRank)) or len(scene.world) or 1
    each = max(int((one.usable_cpus or 1) // ranks), 1) if one is not None else 1
    rivals = _rivals(scene)
    sleeps = [
        fix(
            "Let that thread sleep while it has nothing to do",
            f"{rival.where}: wait in queue.get(timeout=1) or event.wait(1) instead of asking all"
            " the time",
        )
        for rival in rivals[:1]
    ]
    return (
        *sleeps,
        fix(
            "Fewer threads for each rank",
            f"export OMP_NUM_THREADS={each} MKL_NUM_THREADS={each}",
            f"torch.set_num_threads({each}); fewer num_workers",
        ),
        fix(
            "Or more CPUs for the job",
            "srun --cpus-per-task=N, docker run --cpus=N, resources.limits.cpu in Kubernetes",
        ),
        fix("See who burns them", "top -H -b -n 1 | head -30", "nproc; cat /sys/fs/cgroup/cpu.max"),
    )


CAUSE = Cause(
    id="cpu-oversubscribed",
    title="Too many threads for the usable CPUs",
    modes=("slow",),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="cat /proc/pressure/cpu and cpu.stat of the job's cgroup, twice",
)
