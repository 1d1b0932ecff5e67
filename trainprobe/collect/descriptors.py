"""Names of open files in /proc/PID/fd (`socket:[12]`, `pipe:[34]`, a path), never touched."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Optional, Set, Tuple

from trainprobe.collect import procfs

DESCRIPTORS_CAP = 4096
OWNERS_CAP = 64


@dataclass(frozen=True)
class Owners:
    """Name to its (pid, descriptor) pairs; `whole` is false where some were not read."""

    by_name: Dict[str, List[Tuple[int, int]]] = field(default_factory=dict)
    whole: bool = True


def descriptors(
    pid: int, proc: str = "/proc", cap: int = DESCRIPTORS_CAP
) -> Optional[Dict[int, str]]:
    """Descriptor to name, at most `cap`; None where the process is gone or hides them."""
    folder = f"{proc}/{pid}/fd"
    try:
        numbers = sorted(int(name) for name in os.listdir(folder) if name.isdecimal())[:cap]
    except OSError:
        return None
    found: Dict[int, str] = {}
    for number in numbers:
        try:
            found[number] = os.readlink(f"{folder}/{number}")
        except OSError:
            continue  # closed meanwhile
    return found


def find_owners(wanted: Set[str], known: Iterable[int], ends: float, proc: str = "/proc") -> Owners:
    """Look through all processes of this host but the `known` ones for those that have one of the
    `wanted` names open.

    `ends` is the moment on the monotonic clock at which the search stops.
    """
    owners = Owners()
    if not wanted:
        return owners
    visited, whole = set(known), True
    try:
        pids = sorted((int(name) for name in os.listdir(proc) if name.isdecimal()), reverse=True)
    except OSError:
        return Owners(whole=False)
    for pid in pids:
        if pid in visited:
            continue
        if time.monotonic() > ends:
            return Owners(owners.by_name, whole=False)
        theirs = descriptors(pid, proc)
        if theirs is None:
            whole = whole and not os.path.exists(f"{proc}/{pid}")
            continue
        for number, name in theirs.items():
            if name in wanted and len(owners.by_name.setdefault(name, [])) < OWNERS_CAP:
                owners.by_name[name].append((pid, number))
    return Owners(owners.by_name, whole)


def command_of(pid: int, proc: str = "/proc") -> str:
    """The command line, `[name]` in state D, where reading could hang; empty when gone."""
    try:
        now = procfs.parse_stat(procfs.read_page(f"{proc}/{pid}/stat") or "")
    except ValueError:
        return ""
    if now.state == "D":
        return f"[{now.name}]"
    return (procfs.read_page(f"{proc}/{pid}/cmdline") or "").replace("\0", " ").strip()[
        :500
    ] or f"[{now.name}]"
