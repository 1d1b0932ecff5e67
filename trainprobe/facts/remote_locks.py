"""File locks between hosts: on a network file system the kernel of the waiter knows of no holder,
and that of the holder of no waiter.

The waiter stands in flock or fcntl with a descriptor; the holder's own /proc/locks has the lock.
They are joined where both files are the same one of the same
share: the same inode and path below a mount of the same source. Files on local disks are never the
same, whatever their names and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainprobe.collect.collectors.files import OpenFile
from trainprobe.collect.collectors.locks import HeldLock, LockWait
from trainprobe.collect.collectors.mounts import Mount
from trainprobe.facts.processes import ProcessState
from trainprobe.model.facts import Fact
from trainprobe.model.pids import HostPid

# /proc/PID/syscall on x86-64: flock(fd, operation), and fcntl(fd, F_SETLKW or F_OFD_SETLKW).
_FLOCK, _FCNTL = (
    re.compile(r"73 0x([0-9a-f]{1,8}) 0x([0-9a-f]{1,8})\b"),
    re.compile(r"72 0x([0-9a-f]{1,8}) 0x(?:7|26)\b"),
)
LOCK_SH = 1
Place = tuple[str, str, str, int]  # kind and source of the share, path below it, inode


def with_remote_locks(facts: Sequence[Fact]) -> list[Fact]:
    """The same facts, and a LockWait for each process that waits for a lock which a process of
    another host holds.
    """
    mounts = [fact for fact in facts if isinstance(fact, Mount)]
    if not any(mount.remote for mount in mounts):
        return list(facts)
    held: dict[Place, list[HeldLock]] = {}
    for fact in facts:
        if isinstance(fact, HeldLock) and isinstance(fact.pid, HostPid) and fact.inode is not None:
            place = _place(fact.pid, fact.path, fact.inode, fact.cell, mounts)
            if place is not None:
                held.setdefault(place, []).append(fact)
    files = (
        {(fact.cell, fact.pid, fact.fd): fact for fact in facts if isinstance(fact, OpenFile)}
        if held
        else {}
    )
    known = {
        (fact.cell, fact.pid) for fact in facts if isinstance(fact, LockWait) and fact.holder_pid
    }
    found: dict[tuple[str, int], LockWait] = {}
    for fact in facts:
        if (
            isinstance(fact, ProcessState)
            and isinstance(fact.pid, HostPid)
            and (fact.cell, fact.pid) not in known
        ):
            for wait in _waits(fact, fact.pid, files, held, mounts):
                found[fact.cell, fact.pid] = wait
    return [
        *(
            fact
            for fact in facts
            if not (isinstance(fact, LockWait) and (fact.cell, fact.pid) in found)
        ),
        *found.values(),
    ]


def _waits(
    process: ProcessState,
    pid: HostPid,
    files: dict[tuple[str, int, int | None], OpenFile],
    held: dict[Place, list[HeldLock]],
    mounts: Sequence[Mount],
) -> Iterator[LockWait]:
    flock, fcntl = _FLOCK.match(process.syscall), _FCNTL.match(process.syscall)
    asked = flock or fcntl
    file = files.get((process.cell, pid, int(asked[1], 16))) if asked is not None else None
    place = (
        _place(pid, file.path, file.inode, process.cell, mounts)
        if file is not None and file.inode is not None
        else None
    )
    if file is None or place is None:
        return
    shared = flock is not None and int(flock[2], 16) & LOCK_SH
    for lock in held.get(place, ()):
        elsewhere = isinstance(lock.pid, HostPid) and lock.pid.host != pid.host
        if elsewhere and lock.cell == process.cell and ("WRITE" in lock.mode or not shared):
            ids = tuple(dict.fromkeys((*process.evidence, *file.evidence, *lock.evidence)))
            yield LockWait(
                ids,
                process.cell,
                process.rank,
                pid,
                lock.pid,
                file.path,
                lock.kind,
                lock.device,
                file.inode,
            )
            return


def _place(pid: HostPid, path: str, inode: int, cell: str, mounts: Sequence[Mount]) -> Place | None:
    """Where a file of a process lies on a share, None where it is on none that this process
    uses.
    """
    of_it = [
        one
        for one in mounts
        if one.cell == cell
        and any(isinstance(user, HostPid) and user.host == pid.host for user in one.used_by)
    ]
    below = [one for one in of_it if path.startswith(one.path.rstrip("/") + "/")]
    mount = max(below, key=lambda one: len(one.path), default=None)
    if mount is None or not mount.remote or not mount.device:
        return None
    return mount.fstype, mount.device, path[len(mount.path.rstrip("/")) :], inode
