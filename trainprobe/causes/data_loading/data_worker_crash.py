"""A loader worker dies of a native crash or is killed.

The worker is a process of its own. When it dies, the training process only learns that "DataLoader
worker (pid N) is killed by signal", and raises. The fault is in what the worker runs: a decoder, an
image library, a C extension.

It is recognised by those words and by the end of the worker itself. Bus errors belong to
`shm-exhausted`, and a kill for lack of memory to `host-oom-killed`.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.phrases import Fixes, fixes, short, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, statement, weigh_statement
from trainprobe.facts import RankEnding
from trainprobe.signatures.messages import message

WORDING = message("data-worker-crash")
KILLED = r"is killed by signal: Killed"


def _weigh(scene: Scene) -> Weighings:
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


def _summary(scene: Scene) -> str:
    found, dead = statement(scene, WORDING), _dead_workers(scene)
    what = "a worker died"
    if found is not None:
        what = short(found.text, 140)
    elif dead:
        what = f"worker {dead[0].pid} died of {dead[0].signal_name}"
    return f"{subject(scene)} lost a loader worker: {what}"


def _fixes(scene: Scene) -> Fixes:
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
