"""A loader worker dies of a native crash or is killed.

The worker is a process of its own. When it dies, the training process only learns that "DataLoader
worker (pid N) is killed by signal", and raises. The fault is in what the worker runs: a decoder, an
image library, a C extension.

It is recognised by those words and by the end of the worker itself. Bus errors belong to
`shm-exhausted`, and a kill for lack of memory to `host-oom-killed`.

A `multiprocessing.Pool` says nothing: it starts another worker, and whoever asked waits for ever
for the task that is lost. There all workers wait for tasks, and one is younger than the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import itemgetter

from trainprobe.causes.cause import Cause
from trainprobe.causes.phrases import Fixes, fixes, short, subject
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.causes.statements import first_to_fail, statement, weigh_statement
from trainprobe.facts import MainThread, ProcessState, RankEnding, Segfault
from trainprobe.signatures.messages import message

WORDING = message("data-worker-crash")
_POOL = re.compile(r"/multiprocess(?:ing)?/pool\.py$")
REPLACED_S = 2.0  # workers of one pool start within less
NEAR_S = 5.0
KILLED = r"is killed by signal: Killed"


@dataclass(frozen=True)
class Lost:
    """A task that no worker of a pool is at any more, the worker that took the place of one that
    ended, and what the kernel says of that one.
    """

    waiting: MainThread
    workers: tuple[MainThread, ...]
    young: ProcessState
    older_s: float
    crash: Segfault | None


def _weigh(scene: Scene) -> Weighings:
    if (lost := _lost_task(scene)) is not None:
        says = (
            f"Rank {lost.waiting.rank} waits at {lost.waiting.where} for a task of its pool, and"
            f" all {len(lost.workers)} workers wait for tasks: that task is lost"
        )
        yield weighing(13, "suspects-stack", says, lost.waiting, *lost.workers)
        says = (
            f"Worker {lost.young.pid} was started {lost.older_s:.0f} s after the others, in place"
            " of one that has ended"
        )
        yield weighing(10, "process-state-and-locks", says, lost.young)
        if lost.crash is not None:
            says = f"The kernel says what that one ended with: {short(lost.crash.text, 120)}"
            yield weighing(13, "kernel-log", says, lost.crash)
    yield from weigh_statement(scene, WORDING)
    dead = _dead_workers(scene)
    if dead:
        how = dead[0].signal_name or f"exit code {dead[0].code}"
        says = f"Loader worker {dead[0].pid} of rank {dead[0].rank} ended with {how}"
        yield weighing(10, "exit-status", says, *dead)
    elif statement(scene, WORDING) is not None:
        yield from first_to_fail(scene)
    kills = scene.memory.oom_kill_rise if scene.memory is not None else 0
    if kills and statement(scene, KILLED) is not None:
        says = f"The cgroup counted {kills} out-of-memory kills"
        yield weighing(-26, "host-pressure", says, scene.memory)


def _dead_workers(scene: Scene) -> tuple[RankEnding, ...]:
    """Workers that crashed; a parent that leaves ends its workers with SIGTERM."""
    found = [fact for rank in scene.suspects for fact in scene.of(RankEnding, rank=rank)]
    return tuple(
        fact
        for fact in found
        if fact.role == "loader-worker" and fact.abnormal and fact.signal_name != "SIGTERM"
    )


def _lost_task(scene: Scene) -> Lost | None:
    waiting = scene.thread(scene.ranks[0]) if len(scene.ranks) == 1 else None
    if scene.live is None or waiting is None or waiting.moved is not False:
        return None
    if not any(_POOL.search(frame.file) for frame in waiting.frames):
        return None
    workers = tuple(
        thread
        for thread in scene.children(scene.ranks)
        if any(frame.name == "worker" and _POOL.search(frame.file) for frame in thread.frames)
    )
    idle = all(
        any(frame.name.endswith("SimpleQueue.get") for frame in one.frames) for one in workers
    )
    states = [state for one in workers if (state := scene.process_of(one.pid)) is not None]
    aged = [(state.age_s, state) for state in states if state.age_s is not None]
    if len(aged) < 2 or len(aged) < len(workers) or not idle:
        return None
    (youngest_s, young), oldest_s = min(aged, key=itemgetter(0)), max(age for age, _ in aged)
    if oldest_s - youngest_s < REPLACED_S:
        return None
    began = young.looked_at - youngest_s if young.looked_at is not None else None
    crash = first_found(
        one
        for one in scene.of(Segfault)
        if one.at is not None and began is not None and abs(one.at - began) <= NEAR_S
    )
    return Lost(waiting, workers, young, oldest_s - youngest_s, crash)


def _summary(scene: Scene) -> str:
    if (lost := _lost_task(scene)) is not None:
        how = f": {short(lost.crash.text, 120)}" if lost.crash is not None else ""
        return (
            f"{subject(scene)} lost a worker of its process pool{how}; the pool started worker"
            f" {lost.young.pid} in its place, and the task that it had is done by nobody"
        )
    found, dead = statement(scene, WORDING), _dead_workers(scene)
    what = "a worker died"
    if found is not None:
        what = short(found.text, 140)
    elif dead:
        what = f"worker {dead[0].pid} died of {dead[0].signal_name}"
    return f"{subject(scene)} lost a loader worker: {what}"


def _fixes(scene: Scene) -> Fixes:
    if (lost := _lost_task(scene)) is not None:
        return fixes(OF_A_POOL, where=lost.waiting.where)
    dead = _dead_workers(scene)
    killed = statement(scene, KILLED) is not None or (dead and dead[0].signal_name == "SIGKILL")
    return fixes(BY_SIGKILL if killed else BY_ITSELF)


# No crash of its own: SIGKILL comes from outside.
BY_SIGKILL = """
    See who killed it
        dmesg -T | grep -iE 'killed process|oom' | tail -5   (the kernel, for want of memory)
        ps -eo pid,etime,args | grep -iE 'earlyoom|oomd|watchdog'   (a guard of this machine)
    Let it need less memory
        fewer num_workers, a smaller prefetch_factor; samples in one array in place of many objects
"""
OF_A_POOL = """
    Let the crash happen in the training process
        call that function there, in place of the pool, with PYTHONFAULTHANDLER=1: the stack then
            names the line
    Let the wait at {where} end when a worker dies
        concurrent.futures.ProcessPoolExecutor raises BrokenProcessPool; multiprocessing.Pool never
            tells, so map_async(...).get(timeout=600)
"""
BY_ITSELF = """
    Let the crash happen in the training process
        DataLoader(..., num_workers=0) with PYTHONFAULTHANDLER=1: the stack then names the line
    Find the library
        dmesg | grep -i segfault | tail -3   (names the library, where it may be read)
        upgrade the decoder that the line calls
"""


CAUSE = Cause(
    id="data-worker-crash",
    title="A loader worker died",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="the same command with num_workers=0 and PYTHONFAULTHANDLER=1",
    refines="user-exception",
    wording=WORDING,
)
