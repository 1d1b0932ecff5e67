"""A forked child waits for a lock whose holder was a thread that the fork left behind.

`fork` copies the memory of a process, its locks in the state in which they are, but only the one
thread that called it. A lock that another thread held at that moment (of logging, of a module, of a
queue) stays locked in the child for ever. Loader workers are forked by default.

It is recognised by the probe that forks while a thread of an import holds its lock, and, in a run,
by a child with one or two threads whose main thread stands in the acquire of a lock, or in a line
that takes one, in all looks, while no thread of that process can own it. A child that was started
afresh (spawn, forkserver) rules it out.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import (
    busy_children,
    others_wait,
    started_afresh,
    threads_of,
    waits_for_child,
    who,
)
from trainprobe.causes.fork_probe import tried, weigh_elsewhere, weigh_tried
from trainprobe.causes.phrases import Fixes, fix, native_stack, ranks_say, verb
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import MainThread, SourceSite

# Operations of stacks.rules that are locks within one process; multiprocessing's own are shared
# between processes.
IN_PROCESS = frozenset({"futex", "threading", "logging", "queue"})
# `with` over a bare name whose `__enter__` has no frame of its own sleeps in a lock, whatever its
# name is.
TAKES_A_LOCK = re.compile(
    r"(?i)\bwith\b.*(?:lock|mutex|guard|cond|sem)|^\s*with"
    r" [\w.]+(?:\[\w+\])?:|\.acquire\(|\blog(?:ger|ging)?\.\w+\(|\bprint\(|\.(?:put|get)\("
)
# Waits of threading.py for what another thread does, and not for a lock that it holds.
FOR_A_SIGN = re.compile(r"^threading\.py:(?:\w+\.)*(?:wait|wait_for|join|_wait_for_tstate_lock)$")
FEW_THREADS = 2  # a child that was just forked has one, and one more where it puts into a queue


def _line(scene: Scene, thread: MainThread) -> SourceSite | None:
    return next(
        iter(
            scene.sites(
                [frame for frame in reversed(thread.frames) if frame.file == thread.user_file][:1]
            )
        ),
        None,
    )


def _takes_a_lock(scene: Scene, thread: MainThread) -> bool:
    """Does the stack or the line take a Python lock? A futex below a tensor operation does not, nor
    does who waits for an event, a condition, a thread or the next task of a queue.
    """
    if thread.frames and FOR_A_SIGN.search(f"{thread.frames[-1].base}:{thread.frames[-1].name}"):
        return False
    site = _line(scene, thread)
    return thread.op in IN_PROCESS - {"futex"} or (
        site is not None and TAKES_A_LOCK.search(site.text) is not None
    )


def _waiting(scene: Scene) -> tuple[MainThread, ...]:
    found = [
        thread
        for thread in busy_children(scene)
        if thread.leaf == "lock" and thread.op in IN_PROCESS and thread.moved is not True
    ]
    return tuple(thread for thread in found if _takes_a_lock(scene, thread))


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_tried(tried(scene, "lock"))
    waiting = _waiting(scene)
    if not waiting:
        return
    yield from weigh_elsewhere(scene, "lock")
    child, process = waiting[0], scene.process_of(waiting[0].pid)
    points = 13 if child.moved is False else 6
    says = (
        f"{who(child)} stands in the acquire of a lock at {child.where or 'one place'} in"
        f" {child.looks} looks"
    )
    yield weighing(points, "suspects-stack", says, child)
    if started_afresh(scene, child):
        says = "That child was started afresh, so it inherited no lock"
        yield weighing(-26, "process-state-and-locks", says, process)
    elif process is not None and 0 < process.threads <= FEW_THREADS:
        only = "is its only thread" if process.threads == 1 else "has one other thread beside it"
        says = f"It {only}: whoever held that lock is not in this process"
        yield weighing(10, "process-state-and-locks", says, process)
    elif process is not None and process.threads > FEW_THREADS:
        says = f"It has {process.threads} threads, any of which may own the lock"
        yield weighing(-10, "process-state-and-locks", says, process)
    parents = [thread for thread in scene.threads(scene.ranks) if waits_for_child(thread)]
    if parents:
        says = f"{ranks_say(scene.ranks)} {verb(scene.ranks, 'waits', 'wait')} for that child"
        yield weighing(6, "other-stacks", says, *parents)
    elif mains := scene.threads(scene.ranks):
        where = mains[0].where or "a place of its own"
        says = f"{ranks_say(scene.ranks)} stands at {where}, where it waits for no child"
        yield weighing(-6, "other-stacks", says, *mains)
    else:
        yield from others_wait(scene)
    holder = _holder(scene, child)
    if holder:
        says = f"In the parent a thread takes that lock again and again: {holder}"
        yield weighing(10, "source", says, *scene.sites(child.frames))


def _holder(scene: Scene, child: MainThread) -> str:
    """The line in another thread of the parent that takes a lock by the same words."""
    site, parent = _line(scene, child), scene.process_of(child.pid)
    if site is None or parent is None or parent.ppid is None:
        return ""
    wanted = site.text.strip()
    for thread in threads_of(scene, parent.ppid):
        for held in () if thread.main else scene.sites(thread.frames):
            if held.text.strip() == wanted or any(
                block.kind == "with" and block.text.strip() == wanted for block in held.blocks
            ):
                return f"{thread.name or 'a thread'} at {held.file.rsplit('/', 1)[-1]}:{held.line}"
    return ""


def _pids(scene: Scene) -> tuple[int, ...]:
    return tuple(thread.pid for thread in _waiting(scene))


def _summary(scene: Scene) -> str:
    if (failure := tried(scene, "lock")) is not None:
        return failure.says
    child = _waiting(scene)[0]
    return (
        f"{who(child)} waits at {child.where or 'an acquire'} for a lock that a thread of its"
        " parent held when it was forked"
    )


def _fixes(scene: Scene) -> Fixes:
    pid = next(iter(_pids(scene)), 0)
    look = fix(
        "See that nobody in the child owns it",
        f"ls /proc/{pid}/task   (its threads)",
        *native_stack(scene, "the child", pid),
    )
    return (
        *((look,) if pid else ()),
        fix(
            "Start children afresh",
            "DataLoader(..., multiprocessing_context='forkserver')   or 'spawn'",
            "multiprocessing.set_start_method('forkserver')",
        ),
        fix(
            "Or fork before threads start",
            "build the loader's workers first; os.register_at_fork(after_in_child=...) to make the"
            " lock anew",
        ),
    )


CAUSE = Cause(
    id="fork-inherited-lock",
    title="A forked child waits for a lock that nobody can release",
    modes=("hang", "slow", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    pids=_pids,
    would_settle=(
        "ls /proc/<PID>/task of the child, and whether it hangs with"
        " multiprocessing_context='spawn' too"
    ),
    refines="rank-stuck",
    accounts_for=("data-worker-stuck",),
)
