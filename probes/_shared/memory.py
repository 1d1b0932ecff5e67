"""The memory that this process may use: the limits of the host, of its cgroup and of all above it,
version 1 or 2. The standard library only.

Nothing here raises: what cannot be read is left out. Free memory includes file pages that the
kernel gives back first (inactive_file).
"""

from __future__ import annotations

import os
import re
from typing import Iterator, NamedTuple, Optional

from _shared.proc import read_text


class MemoryLimits(NamedTuple):
    """Bytes. `limit` is the least limit up the tree or the host's memory, `free` what is left below
    it, `host_free` the host's; `kills` counts the cgroup's OOM kills; `whole_group`: one kill ends
    all.
    """

    limit: int
    free: int
    host_free: int
    kills: int
    whole_group: bool


def number(folder: str, name: str) -> Optional[int]:
    """Return a file's number; v1 writes nearly 2**63 and v2 `max` for "no limit"."""
    text = read_text(f"{folder}/{name}").strip()
    return int(text) if text.isdecimal() and int(text) < 2**60 else None


def cgroup_folders(controller: str) -> Iterator[str]:
    """This process's cgroup folder and all above it, v1 and v2; a container hides the upper."""
    for line in read_text("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            mount = f"/sys/fs/cgroup/{controllers}".rstrip("/")
            while path not in ("", "/"):
                yield mount + path
                path = os.path.dirname(path)
            yield mount


def memory_limits() -> MemoryLimits:
    """Look once; some tens of small files."""
    host = {
        name: int(count) * 1024
        for name, count in re.findall(
            r"^(MemTotal|MemAvailable): +(\d+)", read_text("/proc/meminfo"), re.MULTILINE
        )
    }
    limit = host.get("MemTotal", 0)
    free = host_free = host.get("MemAvailable", 0)
    kills, whole_group = 0, False
    for folder in cgroup_folders("memory"):
        allowed = number(folder, "memory.max") or number(folder, "memory.limit_in_bytes")
        used = number(folder, "memory.current") or number(folder, "memory.usage_in_bytes")
        if allowed is not None:
            limit = min(limit, allowed)
        if allowed is not None and used is not None:
            files = dict(
                re.findall(
                    r"^((?:total_)?inactive_file) (\d+)$",
                    read_text(f"{folder}/memory.stat"),
                    re.MULTILINE,
                )
            )
            # v1 tells both, and the first is the whole tree's
            given_back = int(files.get("total_inactive_file") or files.get("inactive_file") or 0)
            free = min(free, max(0, allowed - max(0, used - given_back)))
        for text in re.findall(
            r"^oom_kill (\d+)",
            read_text(f"{folder}/memory.events") + read_text(f"{folder}/memory.oom_control"),
            re.MULTILINE,
        ):
            kills = max(kills, int(text))
        whole_group |= read_text(f"{folder}/memory.oom.group").strip() == "1"
    return MemoryLimits(limit, free, host_free, kills, whole_group)
