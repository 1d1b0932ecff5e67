"""Pools of threads all of whose tasks wait for what only a further task of the pool could bring."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.causes.child_processes import ends, threads_of
from trainprobe.causes.phrases import ranks_say, verb
from trainprobe.causes.scene import Scene
from trainprobe.facts import Thread
from trainprobe.stacks.classify import classify
from trainprobe.stacks.places import is_user
from trainprobe.stacks.rules import RPC_HANDLER
from trainprobe.stacks.servers import stands_in

_ASKS = ("torch/distributed/rpc/api.py", "rpc_sync")
_WORKER = ("concurrent/futures/thread.py", "_worker")
_FUTURE = ("torch/futures/__init__.py", "wait")
GLOO_THREADS = 2  # ProcessGroupGloo.cpp, torch 1.0 to 2.13
_AT_A_LOCK = frozenset({"threading", "futex", "queue", "future"})


@dataclass(frozen=True)
class ExhaustedPool:
    """`threads` are all that the pool has, `asking` the ranks whose requests they should answer
    (none for a pool within one process). `nested`: they wait for answers to requests of their own.
    `callbacks`: they are the backend's own, which run what follows on collectives.
    """

    threads: tuple[Thread, ...]
    asking: tuple[int, ...]
    nested: bool = False
    callbacks: bool = False

    @property
    def where(self) -> str:
        """The places of the user's code at which the threads stand."""
        stood = (
            next((frame for frame in reversed(thread.frames) if is_user(frame)), thread.frames[-1])
            for thread in self.threads
        )
        return " and ".join(dict.fromkeys(frame.where for frame in stood))

    @property
    def says(self) -> str:
        many = len(self.threads)
        stand = "its only thread waits" if many == 1 else f"its {many} threads wait"
        if self.nested:
            return (
                f"{stand} at {self.where} for answers to requests of its own, which nobody is"
                " seen to work at, and no thread of the pool is left to take these answers"
            )
        if self.callbacks:
            return (
                f"{stand} at {self.where}, in callbacks of collectives, and none is left to finish"
                " the next collective or to run its callback"
            )
        if not self.asking:
            return (
                f"{stand} at {self.where} for results of tasks, and no thread of the pool is left"
                " to run these tasks"
            )
        return (
            f"{stand} at {self.where} while they answer requests, and"
            f" {ranks_say(self.asking, capital=False)},"
            f" {'which' if len(self.asking) > 1 else 'the only one that'} could send another,"
            f" {verb(self.asking, 'waits', 'wait')} in rpc_sync for"
            f" {verb(self.asking, 'its answer', 'their answers')}"
        )


def exhausted_pool(scene: Scene) -> ExhaustedPool | None:
    """The first such pool in a process at the end of the suspects' waiting."""
    for pid in dict.fromkeys(
        thread.pid for thread in (*ends(scene), *scene.threads(scene.suspects))
    ):
        threads = threads_of(scene, pid)
        found = (
            _rpc_server(scene, pid, threads)
            or _executor(scene, pid, threads)
            or _callbacks(scene, pid, threads)
        )
        if found is not None:
            return found
    return None


def _rpc_server(scene: Scene, pid: int, threads: tuple[Thread, ...]) -> ExhaustedPool | None:
    """All threads that answer requests wait for a lock or condition, and whoever could send
    the request that would let them go on waits for an answer; or all ask somebody else themselves,
    who is not at work for them.
    """
    pool = tuple(one for one in threads if stands_in(one.frames[0], RPC_HANDLER))
    others = [one for one in scene.threads(scene.world) if one.pid != pid]
    asking = tuple(
        one.rank
        for one in others
        if one.rank is not None and any(stands_in(frame, _ASKS) for frame in one.frames)
    )
    if not pool or not _stay(scene, pid, pool):
        return None
    answering = [
        one
        for one in scene.of(Thread)
        if one.pid != pid and one.frames and stands_in(one.frames[0], RPC_HANDLER)
    ]
    if not answering and all(any(stands_in(f, _ASKS) for f in one.frames) for one in pool):
        return ExhaustedPool(pool, asking, nested=True)
    if not asking or len(asking) < len(others) or not all(map(_stands, pool)):
        return None
    return ExhaustedPool(pool, asking)


def _executor(scene: Scene, pid: int, threads: tuple[Thread, ...]) -> ExhaustedPool | None:
    """Each thread of the process's executors waits for a future within its task. Futures of
    other processes end by themselves, so a process with children is left out.
    """
    pool = tuple(one for one in threads if any(stands_in(frame, _WORKER) for frame in one.frames))
    if not pool or any(one.pid != pid for one in scene.children(scene.suspects)):
        return None
    if not all(classify(one.frames).op == "future" and _in_a_task(one) for one in pool):
        return None
    return ExhaustedPool(pool, ()) if _stay(scene, pid, pool) else None


def _callbacks(scene: Scene, pid: int, threads: tuple[Thread, ...]) -> ExhaustedPool | None:
    """Threads that no Python code has started wait for a future in the user's code: callbacks run
    on the threads of gloo, of which there are two for a group.
    """
    pool = tuple(
        one
        for one in threads
        if not one.main
        and one.frames
        and is_user(one.frames[0])
        and stands_in(one.frames[-1], _FUTURE)
    )
    if len(pool) < GLOO_THREADS or not _stay(scene, pid, pool):
        return None
    return ExhaustedPool(pool, (), callbacks=True)


def _in_a_task(thread: Thread) -> bool:
    at = next(i for i, frame in enumerate(thread.frames) if stands_in(frame, _WORKER))
    return any(is_user(frame) for frame in thread.frames[at:])


def _stands(thread: Thread) -> bool:
    place = classify(thread.frames)
    return place.leaf == "lock" and place.op in _AT_A_LOCK


def _stay(scene: Scene, pid: int, pool: tuple[Thread, ...]) -> bool:
    """Did each thread stand there in the look before, too?"""
    looks = {one.look for one in scene.of(Thread) if one.pid == pid and not one.native}
    if len(looks) < 2:
        return False
    stood = {
        (one.os_thread_id, one.frames[-1])
        for one in scene.of(Thread)
        if one.pid == pid and one.look == sorted(looks)[-2] and one.frames
    }
    return all((one.os_thread_id, one.frames[-1]) in stood for one in pool)
