"""Memory, descriptors, tasks and shared memory of the processes of a cell, sampled from /proc at a
bounded cost.
"""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from trainprobe.collect import cgroup, procfs

EVERY_S = 1.0
# of the time, at most; the rollup of a large process takes the kernel some ten milliseconds
SHARE = 0.02
SHM = "/dev/shm"  # noqa: S108 - it is asked for its size
SAMPLED = "the largest of samples, one a second at most, all processes of the cell"
_KB = re.compile(r"^(Pss|Rss):\s+(\d+) kB", re.MULTILINE)


def shm_used() -> int | None:
    """Bytes in /dev/shm, of everybody; None where there is none."""
    try:
        room = os.statvfs(SHM)
    except OSError:
        return None
    return (room.f_blocks - room.f_bfree) * room.f_frsize


@dataclass
class Use:
    """The largest values so far, None where nothing could be read. Bytes, except `fds` (of one
    process) and `pids` (tasks of all).
    """

    pss: int | None = None
    rss: int | None = None
    fds: int | None = None
    pids: int | None = None
    shm: int | None = None
    samples: int = 0
    _shm_before: int | None = field(default_factory=shm_used)
    _due: float = 0.0

    def sample(self, pids: Iterable[int]) -> None:
        """Take one sample, unless the last one is too recent for its cost."""
        began = time.monotonic()
        if began < self._due:
            return
        pss = tasks = 0
        for pid in pids:
            # Rollups are those of the whole process; one of another user, or one that is gone,
            # counts nothing.
            found = dict(_KB.findall(procfs.read_page(f"/proc/{pid}/smaps_rollup") or ""))
            pss += int(found.get("Pss", 0)) * 1024
            self.rss = _most(self.rss, int(found["Rss"]) * 1024) if "Rss" in found else self.rss
            tasks += _count(f"/proc/{pid}/task") or 0
            self.fds = _most(self.fds, _count(f"/proc/{pid}/fd"))
        self.pss = _most(self.pss, pss or None)
        self.pids = _most(self.pids, tasks or None)
        now = shm_used()
        if now is not None and self._shm_before is not None:
            self.shm = _most(self.shm, max(0, now - self._shm_before))
        self.samples += 1
        self._due = began + max(EVERY_S, (time.monotonic() - began) / SHARE)

    def values(self) -> dict[str, tuple[float, str]]:
        """The known values, as name to value and unit."""
        units = {"pss": "B", "rss": "B", "fds": "", "pids": "", "shm": "B"}
        return {
            name: (float(value), unit)
            for name, unit in units.items()
            if (value := getattr(self, name)) is not None
        }


def limits() -> dict[str, tuple[float, str, str]]:
    """The limits that a child of ours will have: name to value, unit and source; those that are
    unlimited or unknown are absent.
    """
    found: dict[str, tuple[float, str, str]] = {}
    now = cgroup.snapshot(cgroup.find())
    total = _meminfo("MemTotal")
    limit = now.limit_bytes if now is not None else None
    if now is not None and limit is not None and (total is None or limit < total):
        found["limit.memory_bytes"] = (float(limit), "B", f"cgroup {now.limit_path}")
    elif total is not None:
        found["limit.memory_bytes"] = (float(total), "B", "MemTotal")
    free = cgroup.headroom_bytes()
    if free is not None:
        found["limit.memory_free_bytes"] = (float(free), "B", "MemAvailable and the cgroup")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for name, value in (("limit.nofile", soft), ("limit.nofile_hard", hard)):
        if value != resource.RLIM_INFINITY:
            found[name] = (float(value), "", "RLIMIT_NOFILE")
    most_tasks = (now.pids_max if now else None, resource.getrlimit(resource.RLIMIT_NPROC)[0])
    tasks = [value for value in most_tasks if value is not None and value >= 0]
    if tasks:
        found["limit.pids"] = (float(min(tasks)), "", "cgroup pids.max and RLIMIT_NPROC")
    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if space != resource.RLIM_INFINITY:
        found["limit.as_bytes"] = (float(space), "B", "RLIMIT_AS")
    try:
        room = os.statvfs(SHM)
        found["limit.shm_bytes"] = (float(room.f_blocks * room.f_frsize), "B", SHM)
    except OSError:
        pass
    cpus = float(len(os.sched_getaffinity(0)))
    quota = now.cpu_quota if now is not None else None
    found["limit.cpus"] = (min(cpus, quota) if quota else cpus, "", "affinity and CPU quota")
    return found


def row(name: str, value: float, unit: str, source: str, **labels: Any) -> dict[str, Any]:
    """One measure, in the form that probes use."""
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "threshold": None,
        "source": source,
        "who": "",
        **labels,
    }


def _meminfo(name: str) -> int | None:
    for line in (procfs.read_or_none("/proc/meminfo") or "").splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == f"{name}:" and words[1].isdecimal():
            return int(words[1]) * 1024
    return None


def _count(folder: str) -> int | None:
    try:
        return len(os.listdir(folder))
    except OSError:
        return None


def _most(number: int | None, other: int | None) -> int | None:
    return max((value for value in (number, other) if value is not None), default=None)
