"""The resources of a process tree, and their limits. Raises nothing; the unreadable is left out."""

from __future__ import annotations

import contextlib
import os
import re
import resource
from typing import Dict, Iterable, NamedTuple, Sequence, Tuple

from _shared.memory import cgroup_folders, memory_limits, number
from _shared.proc import bytes_in, count_entries, descendants, read_text, stat_fields

SHM = "/dev/shm"  # noqa: S108 - the place that is measured


class Usage(NamedTuple):
    """A process tree at one moment: the root's PSS, and the largest PSS and private part below."""

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


def shm_used() -> int:
    with contextlib.suppress(OSError):
        shm = os.statvfs(SHM)
        return (shm.f_blocks - shm.f_bfree) * shm.f_frsize
    return 0


def look(root: int, shm_before: int = 0) -> Usage:
    """Usage at `root` and all below it."""
    pids = [root, *descendants(root)]
    sizes = [bytes_in(f"/proc/{pid}/smaps_rollup") for pid in pids]
    pss = [size.get("Pss", 0) for size in sizes]
    private = [size.get("Private_Clean", 0) + size.get("Private_Dirty", 0) for size in sizes]
    return Usage(
        pss=sum(pss),
        rss=max(size.get("Rss", 0) for size in sizes),
        parent=pss[0],
        worker=max(pss[1:], default=0),
        parent_private=private[0],
        worker_private=max(private[1:], default=0),
        fds=max(open_files(pid) for pid in pids),
        parent_fds=open_files(root),
        pids=sum(count_entries(f"/proc/{pid}/task") for pid in pids),
        shm=max(0, shm_used() - shm_before),
    )


def open_files(pid: int) -> int:
    return count_entries(f"/proc/{pid}/fd")


def added(ranks: Sequence[Usage]) -> Usage:
    """The usage of several ranks together: memory and processes add up, of the rest the most."""
    pss, pids = sum(rank.pss for rank in ranks), sum(rank.pids for rank in ranks)
    return most(ranks)._replace(pss=pss, pids=pids)


def most(samples: Iterable[Usage]) -> Usage:
    """The high water of each number; zeros where there was no look."""
    return Usage(*(max(column) for column in zip(*samples, Usage(*[0] * len(Usage._fields)))))


def cpu_s(pids: Iterable[int]) -> float:
    """Seconds of CPU that these processes have used, with those of their ended children."""
    ticks = sum(int(count) for pid in pids for count in stat_fields(pid)[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def catches(pid: int, number: int) -> bool:
    """Whether the process handles this signal; it would end a process that does not."""
    caught = re.search(r"^SigCgt:\s*(\w+)", read_text(f"/proc/{pid}/status"), re.MULTILINE)
    return bool(caught and int(caught[1], 16) >> (number - 1) & 1)


def limits() -> Dict[str, Tuple[int, str]]:
    """Return {name: (value, unit)} of every limit: memory, descriptors, processes, processors."""
    found: Dict[str, Tuple[int, str]] = {}
    now = memory_limits()
    for name, value in (("memory_bytes", now.limit), ("memory_free_bytes", now.free)):
        if value:
            found[name] = (value, "bytes")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    processes, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    pids = [
        allowed
        for folder in cgroup_folders("pids")
        for allowed in [number(folder, "pids.max")]
        if allowed
    ]
    pids += [
        most for most in [number("/proc/sys/kernel", "pid_max"), processes] if most and most > 0
    ]
    with contextlib.suppress(OSError):
        shm = os.statvfs(SHM)
        found["shm_bytes"] = (shm.f_blocks * shm.f_frsize, "bytes")
    for name, value, unit in (
        ("nofile", soft, ""),
        ("nofile_hard", hard, ""),
        ("as_bytes", space, "bytes"),
        ("pids", min(pids, default=0), ""),
    ):
        if 0 < value != resource.RLIM_INFINITY:
            found[name] = (value, unit)
    found["cpus"] = (len(os.sched_getaffinity(0)), "")
    return found
