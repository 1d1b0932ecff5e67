"""What a rank that stands still waits for, by its stack, source and children; and what helps."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainprobe.causes.child_processes import SERVANTS, threads_of
from trainprobe.causes.concurrent_calls import second_calls
from trainprobe.causes.phrases import ranks_say, short, short_command
from trainprobe.causes.scene import Scene, first_found, user_frame
from trainprobe.collect.collectors.awaited import AwaitedPath, AwaitedValue
from trainprobe.facts import Connection, MainThread, ProcessState, Thread
from trainprobe.stacks.blocked_calls import blocked_call
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user
from trainprobe.stacks.servers import asked_by_ranks_alone, stands_in
from trainprobe.stacks.wait_channels import sleeps_in
from trainprobe.waits.far_ends import far_ends

AT_EXIT = frozenset({"threads-at-exit", "executor-at-exit", "multiprocessing-exit"})
_SERVANT_COMMANDS = re.compile(r"resource_tracker|forkserver")
_ALWAYS = re.compile(r"while\s*\(?(?:True|1)\)?\s*:")
VALUES_CAP = 4
# Operations of stacks.rules that are locks of a module, with what its files are called.
_MODULE_LOCKS = {"logging": "/logging/", "tqdm-lock": "/tqdm/"}
JOINS = ("/threading.py", "join")
_TAKES = frozenset({"acquire", "__enter__", "_acquireLock"})
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
        yield Awaited("input on its stdin", (), (mend,))
    if thread.op == "accept":
        yield _caller(scene, thread)
    yield from _left_behind(scene, thread)
    asks = scene.live is not None and scene.watch.asks_for_children(pid)
    if (thread.leaf == "child-wait" or asks) and (child := _child(scene, thread)) is not None:
        look = (f"ps -o pid,stat,etime,wchan:32,args --ppid {pid}", f"ls -l /proc/{child.pid}/fd")
        mend = "subprocess.run(..., timeout=600), which raises when the command does not end"
        beyond = _beyond(scene, child.pid)
        whom = f"its child `{short_command(child.cmdline)}` (pid {child.pid}){beyond}"
        yield Awaited(whom, look, (mend,))
    if thread.leaf == "net-io":
        yield from _answering(scene, thread)
    if thread.at_a_key:
        yield from _key(scene, thread)
    if at_exit(thread):
        yield from _kept_alive(scene, thread)
    if asked_by_ranks_alone(thread.frames):
        mend = (
            "let every rank meet before rpc.shutdown(), or ask all of them at once for what they do"
            " together: rpc_async to each, then wait for all"
        )
        whom = "requests of other ranks, in torch's RPC, and no rank that could ask it goes on"
        yield Awaited(whom, ("trainprobe attach --verbose   (who asks whom)",), (mend,))
    if thread.leaf == "lock":
        yield from _of_second_thread(scene, thread)
        yield from _lock(scene, thread)
    line = next(iter(scene.sites(thread.frames[-1:])), None)
    if line is not None and _WAITS_FOR_A_SIGNAL.search(line.text):
        status = f"grep -E 'Sig(Blk|Cgt|Pnd)' /proc/{pid}/status"
        mend = "signal.sigtimedwait(..., seconds) in its place"
        yield Awaited("a signal that does not come", (status,), (mend,))
    yield from _condition(scene, thread)


def _caller(scene: Scene, thread: MainThread) -> Awaited:
    """Somebody who connects, as a debugger's client does: nobody was asked for anything."""
    process = scene.process_of(thread.pid)
    reads = process.blocked.reads if process is not None else ()
    port = first_found(
        one.local
        for one in scene.of(Connection)
        if (one.pid, one.state) == (thread.pid, "LISTEN") and one.fd in reads
    )
    line = thread.where or "that line"
    take_out = (
        f"take {line} out, or what leads there, if nobody is meant to connect (a debugger's port,"
        " for instance)"
    )
    return Awaited(
        f"somebody to connect to {port or 'a port on which it listens'}",
        (f"ss -ltnp | grep pid={thread.pid}",),
        (take_out, "settimeout(60) on the listening socket makes accept() raise"),
    )


def _left_behind(scene: Scene, thread: MainThread) -> Iterator[Awaited]:
    """A process whose parent has ended, and which keeps the output of that one open: who reads it
    to its end waits for both.
    """
    if thread.leaf not in ("child-wait", "file-io"):
        return
    process = scene.process_of(thread.pid)
    ends = far_ends(scene.facts, scene.cell, process) if process is not None else ()
    for pid in (pid for end in ends if end.kind == "pipe" and not end.writes for pid in end.pids):
        other = scene.process_of(pid)
        if other is None or (other.role, other.rank) != ("child", thread.rank):
            continue
        parent = scene.process_of(other.ppid or 0)
        if other.ppid == thread.pid or (parent is not None and parent.state not in ("Z", "X")):
            continue
        command = short_command(other.cmdline)
        whom = (
            f"the end of a pipe, which `{command}` (pid {pid}) still keeps open; whoever started it"
            " has ended"
        )
        apart = (
            "give what goes on in the background an output of its own: `command >command.log 2>&1"
            " </dev/null &`, or Popen(..., stdout=open(…))"
        )
        end = "communicate(timeout=600) raises where the end does not come"
        yield Awaited(whom, (f"ls -l /proc/{pid}/fd   (its stdout is the pipe)",), (apart, end))


def _child(scene: Scene, thread: MainThread) -> ProcessState | None:
    """The child that its system call names, else the one that this wait is most likely about;
    never one of Python's own helpers.
    """
    states = [state for state in scene.of(ProcessState) if state.ppid == thread.pid]
    process = scene.process_of(thread.pid)
    named = process.blocked.child if process is not None else None
    return first_found(
        state
        for state in sorted(states, key=lambda state: state.pid != named)
        if state.cmdline and not _SERVANT_COMMANDS.search(state.cmdline)
    )


def _beyond(scene: Scene, pid: int) -> str:
    """`, which waits …`: the rest of the chain behind a process, in words."""
    chain, begins = scene.group.chain, f"pid {pid}"
    ways = (chain[place:] for place, link in enumerate(chain) if _names(link.waiter, begins))
    links = next(ways, ())
    if not links and (says := scene.watch.activity(pid).says):
        return f", which {says}"
    return "".join(f", which {link.how} {link.awaited}" for link in links)


def _names(said: str, process: str) -> bool:
    return said == process or said.startswith(f"{process} ")


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


def _of_second_thread(scene: Scene, thread: MainThread) -> Iterator[Awaited]:
    """A thread of its own that on other ranks is inside a collective, as a saver's may be."""
    calls = second_calls(scene)
    for other in _others(scene, thread) if thread.rank not in calls else ():
        same = [rank for rank, (_, its) in calls.items() if _entry(its) == _entry(other)]
        if same:
            place = calls[same[0]][0]
            whom = (
                f"its thread {_place(other)}, which on {ranks_say(same, capital=False)} is inside"
                f" {place}"
            )
            mend = (
                f"give that thread the same work on all ranks: look for the condition around what"
                f" leads it to {place}"
            )
            yield Awaited(whom, (f"py-spy dump --pid {thread.pid}   (all its threads)",), (mend,))
            return


def _entry(thread: Thread) -> tuple[str, str]:
    """The user's function that a thread was started with."""
    frame = first_found(frame for frame in thread.frames if is_user(frame))
    return (frame.file, frame.name) if frame is not None else ("", thread.name)


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
    elif thread.op == "future" and (worker := _pool_worker(scene, thread)) is not None:
        mend = (
            "bound the work inside the task itself: a timeout of the caller leaves it running, and"
            " the end of the `with` waits for it; executor.shutdown(wait=False) does not"
        )
        whom = f"a task of a process pool: worker {worker.pid} is at {worker.where}"
        yield Awaited(whom, (f"py-spy dump --pid {worker.pid}",), (mend,))
    elif thread.op == "future":
        whom = f", which stands in {_place(others[0])}" if others else ""
        mend = "future.result(timeout=600)"
        yield Awaited(f"a task of a thread or process pool{whom}", (dump,), (mend,))
    elif thread.op in _MODULE_LOCKS:
        holder = _in_module(scene, thread)
        whom = "of its own process, which no other thread of it is seen to hold"
        if holder is not None:
            whom = f"that {_place(holder)} holds{sleeps_at(scene, holder)}"
        mend = "keep the output of that thread short, or send it to a file instead of a pipe"
        yield Awaited(f"the lock of {thread.op.removesuffix('-lock')} {whom}", (dump,), (mend,))
    elif others and any(stands_in(frame, JOINS) for frame in thread.frames):
        mend = "join it with a timeout, and raise where it still runs: thread.join(60)"
        yield Awaited(f"its thread {_place(others[0])}, which it joins", (dump,), (mend,))
    elif thread.op in ("threading", "futex", "") and lock_is_seen(scene, thread):
        whom = ", which no other thread of it is seen to hold"
        if others:
            whom = f"; another thread stands in {_place(others[0])}"
        mend = "a lock that one thread takes twice must be an RLock; no locks in signal handlers"
        yield Awaited(f"a lock within its own process{whom}", (dump,), (mend,))


def _pool_worker(scene: Scene, thread: MainThread) -> MainThread | None:
    """A worker of its process pool that is at a task."""
    return first_found(
        one
        for one in scene.workers(scene.world)
        if (process := scene.process_of(one.pid)) is not None
        and process.ppid == thread.pid
        and one.where
        and any(
            (frame.base, frame.name) == ("process.py", "_process_worker") for frame in one.frames
        )
    )


def _answering(scene: Scene, thread: MainThread) -> Iterator[Awaited]:
    """Another process of this host, at the other end of the socket or pipe on which it waits."""
    process = scene.process_of(thread.pid)
    for end in far_ends(scene.facts, scene.cell, process) if process is not None else ():
        for pid in end.pids:
            there = first_found(scene.of_process(MainThread, pid))
            other = scene.process_of(pid)
            child = "its child " if other is not None and other.ppid == thread.pid else ""
            command = other.cmdline if other is not None else end.commands.get(pid, "")
            named = f"`{short_command(command)}` (pid {pid})" if command else f"pid {pid}"
            stands = f", which stands at {there.where}" if there is not None and there.where else ""
            answer = (
                "have the other end answer also when it fails, or close the connection: then this"
                " wait ends with EOFError"
            )
            mend = (answer, "poll(60) before recv(), or settimeout(60), raises where none comes")
            look = (f"py-spy dump --pid {pid}   (all its threads: is one at work for this?)",)
            yield Awaited(f"an answer of {child}{named}{stands}", look, mend)


def _key(scene: Scene, thread: MainThread) -> Iterator[Awaited]:
    """Who would set a key of the store no evidence tells; what the line says is shown."""
    line = next(iter(scene.sites([Frame("", thread.user_file, thread.user_line)])), None)
    text = (
        f" (`{short(line.text, 70)}`{values_says(scene, thread.pid)})" if line is not None else ""
    )
    mend = "have the rank that should set that key do it before it waits itself"
    look = "grep -rn '\\.set(' for the key of that line: which rank sets it, and when?"
    yield Awaited(f"a key of the store that nobody has set{text}", (look,), (mend,))


def _in_module(scene: Scene, thread: MainThread) -> Thread | None:
    """Another thread of the process inside the module whose lock is wanted, beyond the lock."""
    module = _MODULE_LOCKS[thread.op]
    return first_found(
        one
        for one in threads_of(scene, thread.pid)
        if not one.main
        and any(module in frame.file for frame in one.frames)
        and one.frames[-1].function not in _TAKES
    ) or first_found(_others(scene, thread))


def sleeps_at(scene: Scene, thread: Thread) -> str:
    """`, which writes to its stderr, a pipe that pid 7 does not read`, by the kernel's word."""
    process = scene.process_of(thread.pid)
    calls = process.thread_calls if process is not None else ()
    for tid, wchan, syscall in calls:
        if process is None or tid != thread.os_thread_id:
            continue
        call = blocked_call(syscall)
        for end in far_ends(scene.facts, scene.cell, replace(process, call=call)):
            return f", which {end.says}"
        asleep = sleeps_in(wchan, syscall)
        if asleep is None:
            return ""
        return ", which sleeps" if asleep[1] == "sleep" else f", which sleeps in {asleep[1]}"
    return ""


def _condition(scene: Scene, thread: MainThread) -> Iterator[Awaited]:
    """The `while` loop that the line stands in, innermost first, with what its names stand for."""
    path = first_found(fact for fact in scene.of(AwaitedPath) if fact.pid == thread.pid)
    mend = ("give the loop an end: raise when it has gone round for too long",)
    if path is not None:
        there = {None: "", True: ", which exists", False: ", which does not exist"}[path.exists]
        yield Awaited(f"the file {path.path}{there}", (f"ls -l {shlex.quote(path.path)}",), mend)
    values = values_says(scene, thread.pid)
    for site in scene.sites([frame for frame in reversed(thread.frames) if is_user(frame)][:1]):
        loop = next((block for block in reversed(site.blocks) if block.kind == "while"), None)
        if loop is not None and _ALWAYS.fullmatch(loop.text.strip()) is None:
            head = short(loop.text.strip().rstrip(":"), 70)
            yield Awaited(f"the end of `{head}` (line {loop.line}){values}", (), mend)
        elif loop is not None and values:
            yield Awaited(f"the end of its loop (line {loop.line}){values}", (), mend)


def values_says(scene: Scene, pid: int) -> str:
    """`, with step = 12, holder = 0`; empty where no value was read."""
    found = [fact for fact in scene.of(AwaitedValue) if fact.pid == pid]
    says = ", ".join(f"{fact.name} = {short(fact.value, 80)}" for fact in found[:VALUES_CAP])
    return f", with {says}" if says else ""
