"""What /proc shows of a process and all below it, and the limits that they stand under. Nothing here raises: what cannot be read is left out."""

from __future__ import annotations

import contextlib
import os
import re
import resource
from typing import Dict, Iterable, List, NamedTuple, Tuple

from _memory import cgroup_folders, memory_limits, number

SHM = "/dev/shm"  # noqa: S108 - the place that is measured
NO_LIMIT = 1 << 60  # cgroup v1 writes "unlimited" as a number near 2**63


class Memory(NamedTuple):
    """Bytes of one process: its share of what is mapped, what is its own alone, and what is resident."""

    pss: int
    private: int
    rss: int


class Look(NamedTuple):
    """All processes of a tree at one moment. `parent` is the root's PSS, `worker` the largest PSS below it, `private` the largest private part below it."""

    pss: int
    rss: int
    parent: int
    worker: int
    parent_private: int
    worker_private: int
    fds: int
    parent_fds: int
    pids: int
    shm: int


def memory(pid: int) -> Memory:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii", errors="replace") as file:
        found = {name: int(number) * 1024 for name, number in re.findall(r"^(\w+): +(\d+) kB", file.read(), re.MULTILINE)}
        return Memory(found.get("Pss", 0), found.get("Private_Clean", 0) + found.get("Private_Dirty", 0), found.get("Rss", 0))
    return Memory(0, 0, 0)


def fds(pid: int) -> int:
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0


def tasks(pid: int) -> int:
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/task"))
    return 0


def shm_used() -> int:
    with contextlib.suppress(OSError):
        here = os.statvfs(SHM)
        return (here.f_blocks - here.f_bfree) * here.f_frsize
    return 0


def parents() -> Dict[int, Tuple[int, str]]:
    """Return pid → (parent's pid, state) of all processes."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                state, ppid = file.read().rpartition(")")[2].split()[:2]
                found[int(name)] = (int(ppid), state)
    return found


def below(root: int) -> List[int]:
    """Return the pids of all living descendants of `root`, nearest first; zombies are dead."""
    all_of, found, edge = parents(), [], [root]
    while edge:
        edge = [pid for pid, (ppid, _) in all_of.items() if ppid in edge]
        found += edge
    return [pid for pid in found if all_of[pid][1] not in "ZX"]


def look(root: int, shm_before: int = 0) -> Look:
    """Look at `root` and all below it."""
    under = below(root)
    first, others = memory(root), [memory(pid) for pid in under]
    return Look(
        pss=first.pss + sum(one.pss for one in others),
        rss=max([first.rss, *(one.rss for one in others)]),
        parent=first.pss,
        worker=max((one.pss for one in others), default=0),
        parent_private=first.private,
        worker_private=max((one.private for one in others), default=0),
        fds=max(fds(pid) for pid in [root, *under]),
        parent_fds=fds(root),
        pids=sum(tasks(pid) for pid in [root, *under]),
        shm=max(0, shm_used() - shm_before),
    )


def most(looks: Iterable[Look]) -> Look:
    """The high water of each number; zeros where there was no look."""
    return Look(*(max(column) for column in zip(*looks, Look(*[0] * len(Look._fields)))))


def cpu_s(pids: Iterable[int]) -> float:
    """Seconds of CPU that these processes have used, their ended children included."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            ticks += sum(int(number) for number in file.read().rpartition(")")[2].split()[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def catches(pid: int, number: int) -> bool:
    """Does the process handle this signal? To one that does not it would be the end."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        caught = next(line for line in file if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (number - 1) & 1)
    return False


def limits() -> Dict[str, Tuple[int, str]]:
    """Return name → (value, unit) of every limit that is set: memory, descriptors, processes, shared memory, processors."""
    found: Dict[str, Tuple[int, str]] = {}
    now = memory_limits()
    for name, value in (("memory_bytes", now.limit), ("memory_free_bytes", now.free)):
        if value:
            found[name] = (value, "bytes")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    processes, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    pids = [allowed for folder in cgroup_folders("pids") for allowed in [number(folder, "pids.max")] if allowed]
    pids += [most for most in [number("/proc/sys/kernel", "pid_max"), processes] if most and most > 0]
    with contextlib.suppress(OSError):
        shm = os.statvfs(SHM)
        found["shm_bytes"] = (shm.f_blocks * shm.f_frsize, "bytes")
    for name, value, unit in (("nofile", soft, ""), ("nofile_hard", hard, ""), ("as_bytes", space, "bytes"), ("pids", min(pids, default=0), "")):
        if 0 < value != resource.RLIM_INFINITY:
            found[name] = (value, unit)
    found["cpus"] = (len(os.sched_getaffinity(0)), "")
    return found
