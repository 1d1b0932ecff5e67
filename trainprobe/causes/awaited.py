"""What a rank that stands still waits for, by its stack, source and children; and what helps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainprobe.causes.child_processes import SERVANTS, threads_of
from trainprobe.causes.phrases import short
from trainprobe.causes.scene import Scene, first_found, user_frame
from trainprobe.facts import MainThread, ProcessState, Thread
from trainprobe.stacks.places import is_user

AT_EXIT = frozenset({"threads-at-exit", "executor-at-exit", "multiprocessing-exit"})
_SERVANT_COMMANDS = re.compile(r"resource_tracker|forkserver")
_ALWAYS = re.compile(r"while\s*\(?(?:True|1)\)?\s*:")
_WAITS_FOR_A_SIGNAL = re.compile(r"\bsig(?:wait|timedwait|waitinfo|suspend)\w*\(|\bsignal\.pause\(")

_SPEAKS_OF_A_LOCK = re.compile(
    r"(?i)\bwith\b|acquire|lock|mutex|sem(?:aphore)?\b|cond(?:ition)?\b|barrier|event"
    r"|\.(?:wait|join|get|put|result)\("
)


@dataclass(frozen=True)
class Awaited:
    """`says` completes "it waits for …"; `look` shows more, `mend` changes the code."""

    says: str
    look: tuple[str, ...] = ()
    mend: tuple[str, ...] = ()


def awaited(scene: Scene, rank: int) -> Awaited | None:
    """What the rank waits for; None where nothing but its place is known."""
    thread = scene.thread(rank)
    return next(_awaited(scene, thread), None) if thread is not None else None


def at_exit(thread: MainThread | None) -> bool:
    """Does this rank come to its end, and something in it does not let it?"""
    return thread is not None and thread.leaf == "teardown" and thread.op in AT_EXIT


def last_in_own_code(scene: Scene, thread: MainThread) -> str:
    """The user's line of the thread that keeps a rank from ending; empty if unknown."""
    others = _others(scene, thread)
    frame = user_frame(others[0].frames) if others and at_exit(thread) else None
    return frame.where if frame is not None else ""


def endless(scene: Scene, thread: MainThread) -> bool:
    """Does it stand in a `while True`, whose way out no condition around it says?"""
    for site in scene.sites([frame for frame in reversed(thread.frames) if is_user(frame)][:1]):
        loop = first_found(
            block for block in reversed(site.blocks) if block.kind in ("while", "for")
        )
        return loop is not None and _ALWAYS.fullmatch(loop.text.strip()) is not None
    return False


def _awaited(scene: Scene, thread: MainThread) -> Iterator[Awaited]:
    where, pid = thread.where or "that line", thread.pid
    if thread.op == "debugger":
        mend = f"take the breakpoint() or set_trace() before {where} out"
        look = ("answer it at the terminal of that rank: c", "")
        yield Awaited("a person at the prompt of a debugger", look, (mend,))
    if thread.leaf == "file-io" and thread.op == "terminal":
        mend = (
            f"take the question at {where} out, or start the job with < /dev/null so that it fails"
            " at once"
        )
        yield Awaited("input from a terminal", (), (mend,))
    if thread.leaf == "child-wait" and (child := _child(scene, thread)) is not None:
        look = (f"ps -o pid,stat,etime,wchan:32,args --ppid {pid}", f"ls -l /proc/{child.pid}/fd")
        mend = "subprocess.run(..., timeout=600), which raises when the command does not end"
        whom = f"its child `{short(child.cmdline, 60)}` (pid {child.pid})"
        yield Awaited(whom, look, (mend,))
    if at_exit(thread):
        yield from _kept_alive(scene, thread)
    if thread.leaf == "lock":
        yield from _lock(scene, thread)
    line = next(iter(scene.sites(thread.frames[-1:])), None)
    if line is not None and _WAITS_FOR_A_SIGNAL.search(line.text):
        status = f"grep -E 'Sig(Blk|Cgt|Pnd)' /proc/{pid}/status"
        mend = "signal.sigtimedwait(..., seconds) in its place"
        yield Awaited("a signal that does not come", (status,), (mend,))
    yield from _condition(scene, thread)


def _child(scene: Scene, thread: MainThread) -> ProcessState | None:
    """The child that this wait is most likely about; never one of Python's own helpers."""
    states = [state for state in scene.of(ProcessState) if state.ppid == thread.pid]
    return first_found(
        state for state in states if state.cmdline and not _SERVANT_COMMANDS.search(state.cmdline)
    )


def _others(scene: Scene, thread: MainThread) -> tuple[Thread, ...]:
    """Other threads of the same process that stand in the user's own code."""
    return tuple(
        one
        for one in threads_of(scene, thread.pid)
        if not one.main
        and any(is_user(frame) for frame in one.frames)
        and one.frames[-1].base not in SERVANTS
    )


def _place(thread: Thread) -> str:
    frame = user_frame(thread.frames)
    if frame is not None:
        return f"{thread.name or 'a thread'} at {frame.where}"
    return thread.name or "a thread"


def _kept_alive(scene: Scene, thread: MainThread) -> Iterator[Awaited]:
    others = _others(scene, thread)
    whom = f"its thread {_place(others[0])}" if others else "a thread that is no daemon"
    mend = "Thread(..., daemon=True), or end and join the thread before main() returns"
    dump = f"py-spy dump --pid {thread.pid}"
    yield Awaited(f"{whom}, which keeps it from ending", (dump,), (mend,))


def lock_is_seen(scene: Scene, thread: MainThread) -> bool:
    """Whether a thread that sleeps on a futex waits for a lock of Python: native code sleeps there
    too, and then neither a frame nor the line speaks of one.
    """
    if thread.op not in ("futex", ""):
        return True
    sites = scene.sites(thread.frames[-1:])
    return any(_SPEAKS_OF_A_LOCK.search(site.text) for site in sites)


def _lock(scene: Scene, thread: MainThread) -> Iterator[Awaited]:
    others = _others(scene, thread)
    dump = f"py-spy dump --pid {thread.pid}   (all its threads)"
    if thread.op == "mp-lock":
        which = f"py-spy dump --locals --pid {thread.pid}   (which lock is it?)"
        mend = (
            "take it with a timeout: lock.acquire(timeout=60); a process that dies while it holds"
            " such a lock never gives it back"
        )
        whom = "a lock shared between processes, which nobody here is seen to hold"
        yield Awaited(whom, (which,), (mend,))
    elif thread.op == "future":
        whom = f", which stands in {_place(others[0])}" if others else ""
        mend = "future.result(timeout=600)"
        yield Awaited(f"a task of a thread or process pool{whom}", (dump,), (mend,))
    elif thread.op in ("threading", "futex", "") and lock_is_seen(scene, thread):
        whom = ", which no other thread of it is seen to hold"
        if others:
            whom = f"; another thread stands in {_place(others[0])}"
        mend = "a lock that one thread takes twice must be an RLock; no locks in signal handlers"
        yield Awaited(f"a lock within its own process{whom}", (dump,), (mend,))


def _condition(scene: Scene, thread: MainThread) -> Iterator[Awaited]:
    """The `while` loop that the line stands in, innermost first."""
    for site in scene.sites([frame for frame in reversed(thread.frames) if is_user(frame)][:1]):
        loop = next((block for block in reversed(site.blocks) if block.kind == "while"), None)
        if loop is not None and _ALWAYS.fullmatch(loop.text.strip()) is None:
            yield Awaited(
                f"the end of `{short(loop.text.strip().rstrip(':'), 70)}` (line {loop.line})",
                (),
                ("give the loop an end: raise when it has gone round for too long",),
            )
