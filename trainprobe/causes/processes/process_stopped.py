"""A rank is stopped by a signal or held by a debugger.

A process in state T does nothing until it gets SIGCONT; in state t a debugger holds it. Ctrl-Z in
the terminal, a scheduler that suspends jobs, a forgotten gdb or a `breakpoint()` are the usual
reasons; `docker pause` and `scontrol suspend` may use the freezer of a cgroup instead, which holds
a process in state D or S. The other ranks wait in their next collective.

It is recognised by the state of the process in /proc, T in both looks, or by its cgroup, which says
that it is frozen. A state other than T or t, seen in a look of that kind, rules it out.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.phrases import Fixes, fix, fixes, ranks_say, subject, verb
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import ProcessState

STOPPED = ("T", "t")
_PARTS = {"loader-worker": " (a loader worker)", "child": " (a child process)"}


def _stopped(scene: Scene) -> tuple[ProcessState, ...]:
    """Processes of the suspects (their loader workers too) that are stopped."""
    found = [fact for rank in scene.ranks for fact in scene.of(ProcessState, rank=rank)]
    return tuple(fact for fact in found if fact.state in STOPPED or fact.frozen)


def _weigh(scene: Scene) -> Weighings:
    stopped = _stopped(scene)
    for process in stopped:
        whom = f"pid {process.pid}{_PARTS.get(process.role, '')} of rank {process.rank}"
        what = f"P{whom[1:]} is in state {process.state}"
        if process.frozen:
            says = f"The cgroup of {whom} is frozen"
            yield weighing(26, "process-state-and-locks", says, process)
        elif process.stopped_looks >= 2:
            yield weighing(
                26, "process-state-and-locks", f"{what} in {process.stopped_looks} looks", process
            )
        else:
            yield weighing(13, "process-state-and-locks", f"{what} in one look", process)
        waiting = scene.waiting(scene.others)
        if waiting:
            who = [thread.rank or 0 for thread in waiting]
            says = f"{ranks_say(who)} {verb(who, 'waits', 'wait')} in a collective meanwhile"
            yield weighing(6, "other-stacks", says, *waiting)
        if process.tracer_pid:
            yield weighing(
                6, "environment-and-limits", f"Pid {process.tracer_pid} traces it", process
            )
    shown = [own for rank in scene.ranks if (own := scene.process(rank)) is not None and own.state]
    if not stopped and shown:
        states = ", ".join(sorted({process.state for process in shown}))
        says = (
            f"{ranks_say(scene.ranks)} {verb(scene.ranks, 'is', 'are')} not stopped (state"
            f" {states})"
        )
        yield weighing(-26, "process-state-and-locks", says, *shown)


def _pids(scene: Scene) -> tuple[int, ...]:
    return tuple(dict.fromkeys(process.pid for process in _stopped(scene)))


def _summary(scene: Scene) -> str:
    stopped = _stopped(scene)
    pids = ", ".join(str(pid) for pid in _pids(scene))
    tracer = next((process.tracer_pid for process in stopped if process.tracer_pid), 0)
    by = (
        f"held by the debugger with pid {tracer}"
        if tracer
        else f"stopped by a signal (state {stopped[0].state if stopped else 'T'})"
    )
    by = "frozen with its cgroup" if any(process.frozen for process in stopped) else by
    if stopped and all(process.role != "rank" for process in stopped):
        part = _PARTS.get(stopped[0].role, _PARTS["child"]).strip(" ()")
        whose = ranks_say(scene.ranks, capital=False)
        return f"{part[:1].upper()}{part[1:]} of {whose} (pid {pids}) is {by}, and the rank waits"
    return f"{subject(scene)} (pid {pids}) {verb(scene.ranks, 'is', 'are')} {by}"


FREEZER = """
Thaw its cgroup
    cat /proc/{pid}/cgroup   (its path)
    version 1: echo THAWED > /sys/fs/cgroup/freezer/PATH/freezer.state
    version 2: echo 0 > /sys/fs/cgroup/PATH/cgroup.freeze
    docker unpause CONTAINER, or scontrol resume JOB, where one of them froze it
"""
FIND = """
Find who stops it
    scontrol show job $SLURM_JOB_ID | grep -i suspend   (gang scheduling and preemption stop jobs)
    ps -o pid,ppid,stat,tty,cmd -p {pids}
"""


def _fixes(scene: Scene) -> Fixes:
    stopped, own = _stopped(scene), [str(pid) for pid in _pids(scene)]
    pids = " ".join(own) or "<PID>"
    check = f"grep State /proc/{own[0] if own else '<PID>'}/status"
    tracer = next((process.tracer_pid for process in stopped if process.tracer_pid), 0)
    frozen = [process.pid for process in stopped if process.frozen]
    if frozen:
        first = fixes(FREEZER, pid=frozen[0])
    elif tracer:
        quits = "quit it with `detach` and `quit`"
        first = (fix("Let the debugger go", f"ps -fp {tracer}", quits, verify=check),)
    else:
        first = (fix("Let it go on", f"kill -CONT {pids}", verify=check),)
    return (*first, *fixes(FIND, pids=pids))


CAUSE = Cause(
    id="process-stopped",
    title="A rank is stopped",
    modes=("hang", "slow", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    pids=_pids,
    would_settle="grep State /proc/<PID>/status, twice",
)
