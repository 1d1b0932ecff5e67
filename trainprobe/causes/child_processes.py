"""Where the suspects' waiting ends, in them or in a child process, and what goes on there."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trainprobe.causes.phrases import ranks_say, verb
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import Connection, JobRank, MainThread, ProcessState, Thread
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user

IDLE = "worker-idle"
# A main thread of one of these classes, or in one of these operations, waits for a process below
# it.
FOR_A_CHILD = frozenset({"dataloader", "child-wait"})
FOR_A_QUEUE = frozenset({"mp-queue", "mp-lock", "pool", "connection"})
# Python's own children: they wait for whoever asks
SERVANTS = frozenset({"resource_tracker.py", "forkserver.py"})
SERVICES_BELOW = (
    10_000  # well-known services listen below; NCCL and gloo let the system choose, from 32768 on
)
# Children started afresh share no lock, no thread pool and no socket with their parent
# (multiprocessing/spawn.py, forkserver.py).
_STARTED_AFRESH = re.compile(
    r"multiprocessing[./](?:spawn|forkserver)|--multiprocessing-fork|spawn_main"
)


_IMPORTS = re.compile(r"(?:from|import)\s+(\w[\w.]*)")


def waits_for_child(thread: MainThread) -> bool:
    return thread.leaf in FOR_A_CHILD or thread.op in FOR_A_QUEUE


def busy_children(scene: Scene, ranks: Iterable[int] | None = None) -> tuple[MainThread, ...]:
    """Main threads of busy processes below the suspects, those that stand still first."""
    below = scene.children(scene.suspects if ranks is None else ranks)
    found = [
        thread
        for thread in below
        if thread.leaf != IDLE and not any(frame.base in SERVANTS for frame in thread.frames)
    ]
    return tuple(sorted(found, key=lambda thread: thread.moved is not False))


def ends(scene: Scene) -> tuple[MainThread, ...]:
    """Where the waiting ends: busy children of a rank that waits for a child, else the rank."""
    found: list[MainThread] = []
    for rank in scene.suspects:
        thread = scene.thread(rank)
        children = busy_children(scene, [rank]) if thread is None or waits_for_child(thread) else ()
        found += children or ((thread,) if thread is not None else ())
    return tuple(found)


def circling_worker(scene: Scene) -> MainThread | None:
    """The loader worker of a hung live job that computes in one loop and brings nothing."""
    if scene.live is None or scene.group.mode != "hang":
        return None
    for parent in scene.threads(scene.suspects):
        found = scene.watch.toiling_worker(parent.pid)
        if found is not None and found[1]:
            return next((one for one in busy_children(scene) if one.pid == found[0].pid), None)
    return None


def started_afresh(scene: Scene, child: MainThread) -> bool:
    """Was this child started anew (spawn, forkserver, exec of a program)? One that is forked keeps
    its parent's command line, which may say spawn of the parent itself, and goes on in the stack of
    its parent.
    """
    process = scene.process_of(child.pid)
    if process is not None and process.forked is False and process.ppid in rank_pids(scene):
        return True
    if (
        process is None
        or process.forked
        or any(frame.base == "popen_fork.py" for frame in child.frames)
    ):
        return False
    parent = scene.process_of(process.ppid) if process.ppid is not None else None
    if parent is not None and parent.cmdline == process.cmdline:
        return False
    if _STARTED_AFRESH.search(process.cmdline) is not None:
        return True
    known = {
        frame.file
        for thread in scene.of(MainThread)
        if parent is not None and thread.pid == parent.pid
        for frame in thread.frames
    }
    # a forked child may have given itself another name
    return bool(known and child.frames) and child.frames[0].file not in known


def states(scene: Scene, ranks: Iterable[int] | None = None) -> tuple[ProcessState, ...]:
    """What /proc said of the suspects and all processes below them, launchers left out."""
    found = [
        fact
        for rank in (scene.suspects if ranks is None else ranks)
        for fact in scene.of(ProcessState, rank=rank)
    ]
    return tuple(fact for fact in found if fact.role != "launcher")


def threads_of(scene: Scene, pid: int) -> tuple[Thread, ...]:
    """All threads of one process in the last look that showed any."""
    if threads_of not in scene.found:
        by_pid: dict[int, list[Thread]] = {}
        for fact in scene.of(Thread):
            if fact.frames and not fact.native:
                by_pid.setdefault(fact.pid, []).append(fact)
        scene.found[threads_of] = by_pid
    found: list[Thread] = scene.found[threads_of].get(pid, [])
    last = max((fact.look for fact in found), default=0)
    return tuple(fact for fact in found if fact.look == last)


def goes_on(process: ProcessState | None) -> str:
    """What a process did between the looks, in words; empty if nothing or not measured."""
    if process is None:
        return ""
    if process.wrote_bytes:
        return f"wrote {process.wrote_bytes} bytes"
    # pollers burn less
    if (
        process.all_cpu_s is not None
        and process.looked_s
        and process.all_cpu_s / process.looked_s >= 0.3
    ):
        return f"used {process.all_cpu_s:.2f} s of CPU in {process.looked_s:.2f} s"
    return "read on" if process.read_moved else ""


def who(thread: MainThread) -> str:
    """`Rank 1 (pid 7)`, or `Worker 8 of rank 1`."""
    if thread.role == "rank":
        # a log's stacks name no process
        return f"Rank {thread.rank} (pid {thread.pid})" if thread.pid > 0 else f"Rank {thread.rank}"
    kind = {"loader-worker": "Worker", "compiler": "Compiler"}.get(thread.role, "Child")
    if thread.pid > 0:
        return f"{kind} {thread.pid} of rank {thread.rank}"
    return f"{kind} of rank {thread.rank}"


def others_wait(scene: Scene, points: int = 6) -> Weighings:
    """All other ranks that were seen wait for this one, in a collective or at the store."""
    waiting = scene.waiting(scene.others)
    if waiting:
        ranks = [thread.rank or 0 for thread in waiting]
        says = (
            f"{ranks_say(ranks)} {verb(ranks, 'waits', 'wait')} for"
            f" {ranks_say(scene.ranks, capital=False)} meanwhile"
        )
        yield weighing(points, "other-stacks", says, *waiting)


def longest_sleep(scene: Scene, ranks: Iterable[int]) -> float:
    """Seconds for which one of these has slept without a break; 0 where none is known to."""
    asleep = [state.asleep_s for rank in ranks if (state := scene.process(rank)) is not None]
    return max((one for one in asleep if one), default=0.0)


def rank_pids(scene: Scene) -> frozenset[int]:
    """Every pid that is a rank of this job."""
    pids = {fact.pid for fact in scene.of(JobRank)}
    return frozenset(pids | {fact.pid for fact in scene.of(ProcessState) if fact.role == "rank"})


def outward(scene: Scene, pids: Iterable[int]) -> tuple[Connection, ...]:
    """TCP connections of these processes whose other end is no process of this job, or one that was
    started beside its ranks. Of a job on several hosts, only those to ports of services.
    """
    mine = rank_pids(scene) | {
        fact.pid for fact in scene.of(ProcessState) if fact.role != "child" or fact.rank is not None
    }
    wanted = set(pids)
    found = [
        fact
        for fact in scene.of(Connection)
        if fact.pid in wanted and fact.kind == "tcp" and fact.remote
    ]
    job = scene.live
    several = job is not None and (job.elsewhere or (job.nnodes or 1) > 1)
    stores = (
        {values.get("MASTER_PORT", "") for values in job.environment.values()}
        if job is not None
        else set()
    )
    own = [
        fact
        for fact in found
        if fact.state != "LISTEN"
        and fact.peer_rank is None
        and fact.peer_pid not in mine
        and str(fact.port) not in stores
    ]
    return tuple(
        fact
        for fact in own
        if not several
        or fact.peer_here
        or fact.state == "SYN_SENT"
        or (fact.port or 0) < SERVICES_BELOW
    )


def imported(scene: Scene, thread: MainThread) -> str:
    """The module that this stack imports, by its frames or by the importing line."""
    if thread.importing:
        return thread.importing
    lines = (
        site.text
        for site in scene.sites(frame for frame in reversed(thread.frames) if is_user(frame))
    )
    return next((match.group(1) for line in lines if (match := _IMPORTS.match(line.strip()))), "")


def goes_round(scene: Scene, rank: int) -> str:
    """The user's function that a rank does not leave: the same callers at the same lines in all
    looks, and at most two lines of its own.

    A loop that polls (`while not ready(path): time.sleep(1)`) shows another helper or line in each
    look and still gets nowhere. Of a live job the verdict has judged that already.
    """
    thread = scene.thread(rank)
    if scene.live is not None and thread is not None:
        if scene.watch.activity(thread.pid).kind in ("polls", "spins"):
            return thread.user_function or thread.where
        return ""
    looks = [look.frames for look in scene.looks(rank) if look.frames]
    if len(looks) < 2:
        return ""
    depth = 0
    while (
        all(len(frames) > depth for frames in looks)
        and len({_spot(frames[depth]) for frames in looks}) == 1
    ):
        depth += 1
    here = [frames[depth] for frames in looks if len(frames) > depth]
    same_function = (
        len(here) == len(looks) and len({(frame.file, frame.name) for frame in here}) == 1
    )
    around = here if same_function else [frames[depth - 1] for frames in looks if depth]
    own = (
        bool(around)
        and is_user(around[0])
        and around[0].name != "<module>"
        and len({frame.line for frame in around}) <= 2
    )
    return around[0].name if own else ""


def _spot(frame: Frame) -> tuple[str, str, int]:
    return (frame.file, frame.name, frame.line)
