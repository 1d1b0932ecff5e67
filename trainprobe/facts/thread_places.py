"""From stacks in several looks to one classified main thread per process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from trainprobe.collect.collectors.gpus import Gpu
from trainprobe.collect.collectors.sockets import Connection
from trainprobe.collect.collectors.source import SourceSite
from trainprobe.facts.jobs import Job
from trainprobe.facts.main_threads import MainThread, Thread
from trainprobe.facts.plan import Plan
from trainprobe.facts.processes import ProcessState
from trainprobe.model.facts import Fact
from trainprobe.stacks.classify import Place, classify
from trainprobe.stacks.gpu_waits import brings_to_host
from trainprobe.stacks.places import is_user
from trainprobe.stacks.progress import grew, moved
from trainprobe.stacks.rules import ASKS_THE_STORE, RPC
from trainprobe.stacks.servers import serves, serves_for

# What the line of the user's own frame says, where the stack ends in a C function that shows no
# frame. A wait at the store has its operation from the keys.
_CALLS: tuple[tuple[str, str, str], ...] = (
    (r"\bsleep\(", "sleep", "sleep"),
    (r"\b(?:flock|lockf)\(", "lock", "flock"),
    (
        r"\b\w{0,30}(?:work|handle|request|req|pending|works)\w{0,10}(?:\[\w{1,20}\])?\.wait\(",
        "comm-wait",
        "wait",
    ),
    (ASKS_THE_STORE, "store-wait", ""),
    (r"\b(?:input\(|sys\.stdin\b)", "file-io", "terminal"),
    (r"\bwaitpid\(", "child-wait", "waitpid"),
)
# `for r in range(self.world)` around the keys, or in the call: who waits for a key of every rank
# makes a call that all must make.
_OF_ALL_RANKS = re.compile(r"\bfor \w+ in range\([^()]{0,40}(?:world|ranks|num_proc|nprocs)")
_EXCHANGES = re.compile(r"\b(isend|irecv)\b")
_ASKS_REMOTELY = re.compile(r"\brpc_async\(|\.rpc_async\(\)")
_ASKS = re.compile(r"\b(?:input\(|sys\.stdin\b)")
_WAITS = re.compile(r"[\w\])]\.wait\(")
UNDECIDED = ("python-run", "lock", "")


def join_threads(facts: list[Fact]) -> list[Fact]:
    """Add a MainThread per process to the threads as seen, and a class to each main thread of
    each look.
    """
    facts = _working_threads(facts)
    processes = {(fact.cell, fact.pid): fact for fact in facts if isinstance(fact, ProcessState)}
    texts = {
        (fact.cell, fact.file, fact.line): (fact.text, fact.made)
        for fact in facts
        if isinstance(fact, SourceSite)
    }
    known = _Known(processes, texts, _on_gpu(facts), _at_the_store(facts, processes.values()))
    threads = [fact for fact in facts if isinstance(fact, Thread)]
    by_process: dict[tuple[str, int], list[Thread]] = {}
    for thread in threads:
        if thread.main:
            by_process.setdefault((thread.cell, thread.pid), []).append(thread)
    kept = [
        (
            replace(fact, leaf=_place(fact, known).leaf)
            if isinstance(fact, Thread) and fact.main
            else fact
        )
        for fact in facts
    ]
    return kept + [_main_thread(looks, known) for looks in by_process.values()]


@dataclass(frozen=True)
class _Known:
    """What is known beside the stacks: processes by (cell, pid), (text, what made the handle) of
    source lines by (cell, file, line), and the (cell, pid) of those that wait at the store.
    """

    processes: Mapping[tuple[str, int], ProcessState]
    texts: Mapping[tuple[str, str, int], tuple[str, str]]
    on_gpu: frozenset[tuple[str, int]]
    at_store: frozenset[tuple[str, int]]


def _on_gpu(facts: Iterable[Fact]) -> frozenset[tuple[str, int]]:
    """The processes that compute on a GPU: as their threads or the driver say, or as planned."""
    planned = any(isinstance(fact, Plan) and fact.device == "cuda" for fact in facts)
    holders = {pid for gpu in facts if isinstance(gpu, Gpu) for pid in gpu.pids}
    return frozenset(
        (fact.cell, fact.pid)
        for fact in facts
        if isinstance(fact, ProcessState) and (planned or fact.on_gpu or fact.pid in holders)
    )


def _at_the_store(
    facts: Iterable[Fact], processes: Iterable[ProcessState]
) -> frozenset[tuple[str, int]]:
    """The processes whose main thread waits for an answer over a connection to the port of the
    job's store, whatever the program calls the store.
    """
    facts = tuple(facts)
    ports = {
        (fact.cell, port) for fact in facts if isinstance(fact, Job) for port in fact.store_ports
    }
    asked = {
        (fact.cell, fact.pid, fact.fd)
        for fact in facts
        if isinstance(fact, Connection) and (fact.cell, fact.remote.rpartition(":")[2]) in ports
    }
    return frozenset(
        (one.cell, one.pid)
        for one in processes
        if any((one.cell, one.pid, fd) in asked for fd in one.blocked.reads)
    )


def _working_threads(facts: list[Fact]) -> list[Fact]:
    """Where the main thread only serves requests, as in an actor of Ray or a server of torch's
    RPC, the thread that runs the user's code in the last look counts as the main one.
    """
    servers = {
        (fact.cell, fact.pid): fact.frames
        for fact in facts
        if isinstance(fact, Thread) and fact.main and serves(fact.frames)
    }
    working: dict[tuple[str, int], Thread] = {}
    for fact in facts:
        if not isinstance(fact, Thread) or fact.main or fact.native or not fact.frames:
            continue
        main = servers.get((fact.cell, fact.pid))
        if main is None or not serves_for(main, fact.frames):
            continue
        best = working.get((fact.cell, fact.pid))
        longer = best is None or (fact.look, len(fact.frames)) > (best.look, len(best.frames))
        if longer and any(is_user(frame) for frame in fact.frames):
            working[fact.cell, fact.pid] = fact
    return [_of_the_working(fact, working) for fact in facts] if working else facts


def _of_the_working(fact: Fact, working: Mapping[tuple[str, int], Thread]) -> Fact:
    """The fact as the working thread of its process makes it: who is the main thread, and in which
    call it sleeps.
    """
    if not isinstance(fact, (Thread, ProcessState)) or (fact.cell, fact.pid) not in working:
        return fact
    tid = working[fact.cell, fact.pid].os_thread_id
    if isinstance(fact, Thread):
        return replace(fact, main=fact.os_thread_id == tid)
    wchan, syscall = next(
        ((wchan, syscall) for one, wchan, syscall in fact.thread_calls if one == tid), ("", "")
    )
    # how long that thread has slept nobody knows: the naps are the main thread's
    return replace(fact, wchan=wchan, syscall=syscall, call=None, asleep_s=None)


def _main_thread(all_looks: list[Thread], known: _Known) -> MainThread:
    python = sorted(
        (thread for thread in all_looks if not thread.native), key=lambda thread: thread.look
    )
    native = [thread for thread in all_looks if thread.native]
    looks = python or native
    last = next((thread for thread in reversed(looks) if thread.frames), looks[-1])
    place = _place(last, known)
    if place.leaf in UNDECIDED and native and native[-1].frames:
        deeper = _place(native[-1], known)
        place = replace(deeper, user=place.user or deeper.user) if deeper.leaf else place
    user = place.user
    stacks = [thread.frames for thread in looks]
    went_on = moved(stacks)
    if went_on and place.leaf == "lock" and grew(stacks):
        went_on = False
    return MainThread(
        evidence=_ids(all_looks),
        cell=last.cell,
        rank=next((thread.rank for thread in looks if thread.rank is not None), None),
        pid=last.pid,
        role=last.role,
        frames=last.frames,
        leaf=place.leaf,
        op=place.op,
        where=user.where if user else (last.frames[-1].where if last.frames else ""),
        user_file=user.file if user else "",
        user_line=user.line if user else 0,
        user_function=user.name if user else "",
        moved=went_on,
        looks=len(looks),
        owns_gil=all(thread.owns_gil for thread in looks),
        source="py-spy",
        importing=place.importing,
        in_atexit=place.in_atexit,
        in_backward=place.in_backward,
        lock_path=place.lock_path,
        timer_s=last.timer_s,
    )


def _place(thread: Thread, known: _Known) -> Place:
    process = known.processes.get((thread.cell, thread.pid))
    channel = (
        (process.wchan, process.syscall, process.state) if process is not None else ("", "", "")
    )
    place = classify(thread.frames, wchan=channel[0], syscall=channel[1], state=channel[2])
    leaf = thread.frames[-1] if thread.frames else None
    open_to_text = (
        place.leaf in UNDECIDED
        or (place.leaf == "net-io" and place.op in ("poll", "recv", "select"))
        or (place.leaf == "file-io" and place.op == "pipe")
    )  # torch's store polls its socket, and a question may be asked through a pipe
    if (
        not open_to_text
        or leaf is None
        or leaf != place.user
        or (place.leaf == "lock" and place.op not in ("futex", ""))
    ):
        return place
    text, made = known.texts.get((thread.cell, leaf.file, leaf.line), ("", ""))
    text = text or leaf.text
    key = "store.wait" if _OF_ALL_RANKS.search(text) else "key"
    if place.leaf == "net-io" and (thread.cell, thread.pid) in known.at_store:
        return replace(place, leaf="store-wait", op=key)
    if place.leaf == "file-io":
        asks = _ASKS.search(text) is not None
        return replace(place, op="terminal") if asks else place
    for pattern, kind, op in _CALLS:
        if channel[2] != "R" and re.search(pattern, text):
            return replace(place, leaf=kind, op=_of_handle(made) if op == "wait" else op or key)
    if _WAITS.search(text) and channel[2] != "R":
        # Python's own waits have frames. What is left are torch's, in C++: of a store, which polls
        # its socket, or of the handle of a call.
        if place.leaf == "net-io":
            return replace(place, leaf="store-wait", op=key)
        if place.op == "futex":
            return replace(place, leaf="comm-wait", op=_of_handle(made))
    runs = channel[2] in ("R", "")
    if runs and (thread.cell, thread.pid) in known.on_gpu and brings_to_host(text):
        return replace(place, leaf="gpu-wait", op="copy")
    return place


def _of_handle(made: str) -> str:
    """The operation of the handle that is waited for, where the source says that it is a send, a
    receive or a remote call; of a collective the others' calls tell more than its name.
    """
    if _ASKS_REMOTELY.search(made):
        return RPC
    match = _EXCHANGES.search(made)
    return match.group(1) if match is not None else "wait"


def _ids(threads: Iterable[Thread]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id_ for thread in threads for id_ in thread.evidence))
