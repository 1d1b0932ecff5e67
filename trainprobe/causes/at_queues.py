"""Who stands at which end of a queue: `put`, `get`, `join`, or the thread that feeds the queue's pipe."""

from __future__ import annotations

from trainprobe.causes.ends import busy_children, ends, goes_on, states
from trainprobe.causes.scene import Scene
from trainprobe.facts import MainThread, PipeEnd, ProcessState, Thread

QUEUES = ("multiprocessing/queues.py", "/queue.py", "multiprocess/queues.py", "multiprocessing/connection.py")
FEEDS = frozenset({"_feed", "_finalize_join"})


def queue_call(thread: MainThread | Thread) -> str:
    """`put`, `get`, `join` or `feed`: what a thread does at a queue; empty elsewhere. The loader's own queues are not counted."""
    if any("torch/utils/data/" in frame.file for frame in thread.frames):
        return ""
    for frame in reversed(thread.frames[-6:]):
        name = frame.name.rsplit(".", 1)[-1]
        proxied = frame.file == "<string>" and any("multiprocessing/managers.py" in one.file for one in thread.frames)  # the method of a manager's proxy
        if (proxied or any(path in frame.file for path in QUEUES)) and (name in ("put", "get", "join") or name in FEEDS):
            return "feed" if name in FEEDS else name
        if name == "_finalize_join" or (name == "_exit_function" and "multiprocessing/util.py" in frame.file):
            return "feed"
    return ""


def at_queues(scene: Scene) -> tuple[tuple[Thread, str], ...]:
    """All threads of the suspects and of processes below them that stand at a queue, as last seen."""
    last: dict[tuple[int, int | None], Thread] = {}
    for rank in scene.suspects:
        for thread in scene.facts.of(Thread, cell=scene.cell, rank=rank):
            if not thread.native:
                last[thread.pid, thread.os_thread_id] = thread
    return tuple((thread, call) for thread in last.values() if (call := queue_call(thread)))


def piping_of(scene: Scene) -> tuple[ProcessState, ...]:
    """Processes at the end of the suspects' waiting that sleep in the write to a full pipe, or in the read of an empty one."""
    pids = {thread.pid for thread in ends(scene)} - {thread.pid for thread in scene.workers(scene.suspects)}
    pids |= {state.pid for state in _awaited_programs(scene)}
    return tuple(state for state in states(scene) if state.pid in pids and ("pipe_write" in state.wchan or "pipe_read" in state.wchan) and not goes_on(state))


def _awaited_programs(scene: Scene) -> tuple[ProcessState, ...]:
    """Children without Python at a pipe whose other end nobody has but the very rank that waits for them to end."""
    waiting = {thread.pid for thread in scene.threads(scene.suspects) if thread.leaf == "child-wait" and thread.moved is not True}
    found = []
    for state in states(scene):
        mode = "w" if "pipe_write" in state.wchan else "r"
        ends_of = [end for end in scene.facts.of(PipeEnd, cell=scene.cell) if end.pid == state.pid and mode in end.mode]
        if state.role == "child" and state.ppid in waiting and ends_of and all(set(end.other_pids) == {state.ppid} for end in ends_of):
            found.append(state)
    return tuple(found)


def other_end(scene: Scene, pid: int, mode: str) -> str:
    """Who has the other end of the pipe in which `pid` sleeps, and what it does."""
    other, thread = _other(scene, pid, mode)
    if thread is not None:
        return f"pid {thread.pid}, which stands at {thread.where or thread.leaf}"
    return f"pid {other}" if other else "nobody that is seen" if _ends_of(scene, pid, mode) else ""


def other_pid(scene: Scene, pid: int, mode: str) -> int:
    """The process at the other end of the pipe in which `pid` sleeps, one with a Python stack first; 0 where none is seen."""
    return _other(scene, pid, mode)[0]


def _other(scene: Scene, pid: int, mode: str) -> tuple[int, MainThread | None]:
    others = [other for end in _ends_of(scene, pid, mode) for other in end.other_pids if other != pid]
    thread = next((thread for thread in scene.facts.of(MainThread, cell=scene.cell) if thread.pid in others), None)
    return (thread.pid, thread) if thread is not None else (next(iter(others), 0), None)


def _ends_of(scene: Scene, pid: int, mode: str) -> list[PipeEnd]:
    return [end for end in scene.facts.of(PipeEnd, cell=scene.cell) if end.pid == pid and mode in end.mode]


def look_at(scene: Scene, pid: int) -> str:
    """The command that shows what a process does: its Python stack where it has one, else what the kernel says of it."""
    if pid <= 0:
        return "trainprobe attach   (while it hangs the next time)"
    python = any(thread.pid == pid for thread in scene.facts.of(MainThread, cell=scene.cell))
    return f"py-spy dump --pid {pid}" if python else f"ps -o pid,ppid,stat,etime,wchan:32,args -p {pid}"


def writers_of(scene: Scene) -> tuple[MainThread, ...]:
    """Main threads, of a rank or a child, that stand in `put` or in the end of a queue."""
    threads = (*scene.threads(scene.suspects), *busy_children(scene))
    return tuple(thread for thread in threads if queue_call(thread) in ("put", "feed", "join") and thread.moved is not True)


def joining_of(scene: Scene) -> tuple[MainThread, ...]:
    """Ranks that wait for the end of a child."""
    joins = ("join", "wait", "waitpid", "pool", "spawn")
    return tuple(thread for thread in scene.threads(scene.suspects) if thread.leaf == "child-wait" and thread.op in joins and thread.moved is not True)


def reading_of(scene: Scene) -> tuple[MainThread, ...]:
    """Ranks that stand in `get`."""
    return tuple(thread for thread in scene.threads(scene.suspects) if queue_call(thread) == "get" and thread.moved is not True)
