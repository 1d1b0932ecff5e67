"""A process or a thread of a live rank that died of an exception, while the rank waits on."""

from __future__ import annotations

import re

from trainprobe.causes.child_processes import threads_of
from trainprobe.causes.scene import Scene, first_found
from trainprobe.facts import MainThread, RankException, Thread
from trainprobe.stacks.rules import ASKS_THE_STORE
from trainprobe.waits.loops import own_frames

_BY_A_PROCESS = ("multiprocessing/", "multiprocess/", "/subprocess.py", "concurrent/futures/")
_ASKS_AGAIN = frozenset({"sleep", "net-io", "file-io"})
_BY_A_THREAD = frozenset({"queue", "threading", "futex"})  # operations of the leaf "lock"


def dead_helper(scene: Scene) -> tuple[RankException, MainThread] | None:
    """The last exception of a process below the one suspect that stands still, or of a thread of
    its own, and where that one waits. A common stream does not say whose the process was: then the
    wait has to be one for a process. Nor whose the thread was: it must be gone from this rank, and
    the wait one that a thread would end. Where the suspect, or the thread that it joins, asks the
    store for a key, the thread that never set it may be one of the same name in another rank.
    """
    if scene.live is None or scene.group.mode != "hang" or len(scene.ranks) != 1:
        return None
    waiting = scene.thread(scene.ranks[0])
    if waiting is None or waiting.moved is True:
        return None
    # below its own code: a rank may itself be the task of a process that multiprocessing made
    below = waiting.frames[len(own_frames(waiting.frames)) :]
    asks = any(path in frame.file for frame in below for path in _BY_A_PROCESS)
    locked = not asks and waiting.leaf == "lock" and waiting.op in _BY_A_THREAD
    polls = waiting.leaf in _ASKS_AGAIN
    threads = threads_of(scene, waiting.pid)
    alive = {thread.name for thread in threads}
    for_a_key = waiting.leaf == "store-wait" or (
        locked and any(_asks_the_store(scene, thread) for thread in threads)
    )

    def may_have_ended_it(one: RankException) -> bool:
        mine = one.rank is not None
        if mine and one.rank != waiting.rank:
            return one.of_a_helper
        if one.child:
            return asks or (polls and mine)
        if one.of_a_helper and one.thread in alive:
            return for_a_key and not mine
        return one.of_a_helper and (locked or for_a_key or (polls and mine))

    told = [*scene.of(RankException, rank=waiting.rank), *scene.of(RankException, rank=None)]
    if for_a_key:
        told += [one for one in scene.of(RankException) if one.rank not in (None, waiting.rank)]
    died = first_found(
        one
        for one in reversed(told)
        if not (one.echo or one.interrupted) and may_have_ended_it(one)
    )
    return (died, waiting) if died is not None else None


def _asks_the_store(scene: Scene, thread: Thread) -> bool:
    return any(
        re.search(ASKS_THE_STORE, site.text)
        for site in scene.sites(own_frames(thread.frames)[-1:])
        if not thread.main
    )


def helper_says(died: RankException) -> str:
    """`Spawn-3, a process of rank 1,`: who died."""
    whose = f"rank {died.rank}" if died.rank is not None else "the job"
    return (
        f"{died.child}, a process of {whose},"
        if died.child
        else f"The thread {died.thread} of {whose}"
    )
