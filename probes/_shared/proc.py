"""What /proc shows of processes. Nothing here raises: what cannot be read is empty."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Dict, List, Tuple


def read_text(path: str) -> str:
    """The text of a file; "" where it cannot be read."""
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""


def count_entries(folder: str) -> int:
    """How many entries a folder has, such as /proc/PID/fd or /proc/PID/task."""
    with contextlib.suppress(OSError):
        return len(os.listdir(folder))
    return 0


def stat_fields(pid: int) -> List[str]:
    """The fields of /proc/PID/stat from the state on (proc(5) counts it as the third)."""
    return read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def bytes_in(path: str) -> Dict[str, int]:
    """The `Name: N kB` lines of a file such as /proc/PID/status or smaps_rollup, in bytes."""
    rows = re.findall(r"^(\w+):\s+(\d+) kB", read_text(path), re.MULTILINE)
    return {name: int(count) * 1024 for name, count in rows}


def parents() -> Dict[int, Tuple[int, str]]:
    """Pid → (parent's pid, state) of all processes."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    rows = [(pid, stat_fields(pid)) for pid in pids]
    return {pid: (int(fields[1]), fields[0]) for pid, fields in rows if len(fields) > 1}


def descendants(root: int) -> List[int]:
    """The pids of all living descendants of `root`, nearest first; zombies do not count."""
    table, found, generation = parents(), [], [root]
    while generation:
        generation = [pid for pid, (parent, _) in table.items() if parent in generation]
        found += generation
    return [pid for pid in found if table[pid][1] not in "ZX"]
