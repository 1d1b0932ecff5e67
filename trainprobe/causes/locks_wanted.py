"""Which lock files the suspects want, and who holds them, by the kernel's lists and by stacks."""

from __future__ import annotations

import re

from trainprobe.causes.phrases import ranks_say
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import HeldLock, LockWait, MainThread
from trainprobe.stacks.places import is_user
from trainprobe.waits import calls_for_locks

FILE_LOCKS = frozenset({"flock", "filelock", "fcntl", "FileBaton", "portalocker", "lockf"})
# What open(…, O_CREAT | O_EXCL), open(…, "x"), mkdir and link raise where the name is taken: the
# oldest form of a lock file.
_NAME_TAKEN = re.compile(r"except\b.*\bFileExistsError\b")


def lock_waits(scene: Scene) -> tuple[LockWait, ...]:
    mine = {process.pid for rank in scene.suspects if (process := scene.process(rank)) is not None}
    mine |= {
        thread.pid for thread in (*scene.threads(scene.suspects), *scene.workers(scene.suspects))
    }
    return tuple(fact for fact in scene.of(LockWait) if fact.pid in mine)


def wanting_file_locks(scene: Scene) -> tuple[MainThread, ...]:
    """Threads that stand in the acquire of a lock file."""
    threads = (*scene.threads(scene.suspects), *scene.workers(scene.suspects))
    return tuple(
        thread
        for thread in threads
        if thread.lock_path or (thread.leaf == "lock" and thread.op in FILE_LOCKS)
    )


def held_by_others(scene: Scene) -> tuple[HeldLock, ...]:
    """Locks that somebody else holds on a file which a thread asks for again and again."""
    wanted = {
        thread.pid: thread.lock_path.removeprefix("./")
        for thread in wanting_file_locks(scene)
        if thread.lock_path
    }
    locks = scene.of(HeldLock)
    named = [
        lock
        for lock in locks
        for pid, path in wanted.items()
        if lock.pid != pid and (lock.path == path or lock.path.endswith(f"/{path}"))
    ]
    return tuple(named) or tuple(lock for _, lock in asked_inside_a_call(scene))


def holders(scene: Scene) -> tuple[int, ...]:
    """The processes that hold a lock which a suspect wants."""
    return (
        *(fact.holder_pid for fact in lock_waits(scene) if fact.holder_pid),
        *(fact.pid for fact in held_by_others(scene)),
    )


def wanted_path(scene: Scene) -> str:
    found = [fact.path for fact in lock_waits(scene) if fact.path] + [
        thread.lock_path for thread in wanting_file_locks(scene) if thread.lock_path
    ]
    found += [lock.path for _, lock in asked_inside_a_call(scene)]
    found += [
        event.captured["file"]
        for event in scene.events("lock-waiting", "import-lock-waits", "lock-timeout")
        if event.captured.get("file")
    ]
    return scene.whole_path(found[0]) if found else ""


def name_taken(scene: Scene) -> tuple[MainThread, ...]:
    """Threads that retry because a name exists: `except FileExistsError: time.sleep(1)`."""
    found = []
    for thread in (*scene.threads(scene.suspects), *scene.workers(scene.suspects)):
        own = [frame for frame in thread.frames if is_user(frame)]
        for site in scene.sites(own[-1:]):
            kinds = [block.kind for block in site.blocks]
            handlers = [
                n
                for n, block in enumerate(site.blocks)
                if block.branch == "handler" and _NAME_TAKEN.search(block.text)
            ]
            if any("while" in kinds[:n] or "for" in kinds[:n] for n in handlers):
                found.append(thread)
    return tuple(found)


def asked_inside_a_call(scene: Scene) -> tuple[tuple[MainThread, HeldLock], ...]:
    """Threads asleep in one C call while another process holds a file of theirs locked."""
    return tuple(
        (thread, lock)
        for thread in (*scene.threads(scene.suspects), *scene.workers(scene.suspects))
        for lock in calls_for_locks.asked_inside_a_call(
            scene.facts,
            scene.cell,
            thread,
            scene.process_of(thread.pid),
            next(iter(scene.sites(thread.frames[-1:])), None),
        )
    )


def says_of_polling(scene: Scene) -> Weighings:
    """Evidence of a lock that no stack names: polled within one call, or its name is taken."""
    for thread, lock in asked_inside_a_call(scene)[:1]:
        says = f"Pid {thread.pid} has that file open and sleeps inside one call at {thread.where}"
        yield weighing(10, "suspects-stack", says, thread, lock)
        return
    for thread in name_taken(scene)[:1]:
        where = f"{ranks_say([thread.rank or 0])} stands at {thread.where}"
        says = (
            f"{where}, in a loop's `except FileExistsError`: the file that it would create alone is"
            " there"
        )
        yield weighing(13, "suspects-stack", says, thread)
