"""The memory of this process and what it may have, for the `MEM:` line."""

from __future__ import annotations

import os

from trainprobe.import_lock.lock_file import read


def line(who: str, before_bytes: int, when: str) -> str:
    """`MEM: rank 3 pid 4242 rss 812 MiB (+640 MiB) peak 1024 MiB limit 4096 MiB after import`;
    empty where the system does not say.
    """
    rss, peak = resident_bytes()
    limit = limit_bytes()
    allowed = f" limit {_mib(limit)} MiB" if limit else ""
    return (
        f"MEM: {who} rss {_mib(rss)} MiB ({_mib(rss - before_bytes):+d} MiB) peak {_mib(peak)}"
        f" MiB{allowed} {when}"
        if rss
        else ""
    )


def resident_bytes() -> tuple[int, int]:
    """Return (resident now, its peak) in bytes; (0, 0) where the system does not say."""
    lines = dict(
        line.split(":", 1)
        for line in read("/proc/self/status").splitlines()
        if line.startswith(("VmRSS:", "VmHWM:"))
    )
    sizes = {name: int(text.split()[0]) * 1024 for name, text in lines.items()}
    return sizes.get("VmRSS", 0), sizes.get("VmHWM", 0)


def limit_bytes() -> int:
    """Return the least memory limit up the cgroup tree, version 1 or 2, or else the host's
    memory; 0 where unknown.
    """
    total = next(
        (
            line.split()[1]
            for line in read("/proc/meminfo").splitlines()
            if line.startswith("MemTotal:")
        ),
        "0",
    )
    limits = [int(total) * 1024] if int(total) else []
    for line in read("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if not names or "memory" in names.split(","):
            folder, name = (
                (f"/sys/fs/cgroup/{names}", "memory.limit_in_bytes")
                if names
                else ("/sys/fs/cgroup", "memory.max")
            )
            while path:
                text = read(f"{folder}{path.rstrip('/')}/{name}").strip()
                limits += [int(text)] if text.isdecimal() else []
                path = os.path.dirname(path) if path != "/" else ""
    return min(limits, default=0)


def _mib(size_bytes: int) -> int:
    return round(size_bytes / 2**20)
