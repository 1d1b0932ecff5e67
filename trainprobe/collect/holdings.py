"""What processes hold that another run may need: memory, GPU memory, listening ports, file locks,
shared memory.

Memory is the proportional set size of /proc/PID/smaps_rollup (proc(5), Linux 4.14), in which what
several share is counted once in all. A lock taken before a fork is listed in /proc/locks under the
process that took it, which may be gone; the descriptor of whoever still has it tells of it in
/proc/PID/fdinfo.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from trainprobe.collect import procfs
from trainprobe.collect.collectors.sockets import parse_inet
from trainprobe.collect.descriptors import descriptors

SHM = "/dev/shm/"  # noqa: S108 - compared with names in /proc, not written to
MAPS_CAP_BYTES = 4 * 2**20
ROWS_CAP = 32


@dataclass
class Held:
    """What one process holds. Sizes in bytes, None where they could not be read; `gpus` is
    (index, bytes), `shm` inode to bytes.
    """

    rss: Optional[int] = None
    pss: Optional[int] = None
    ports: List[int] = field(default_factory=list)
    locks: List[str] = field(default_factory=list)
    gpus: List[Tuple[int, Optional[float]]] = field(default_factory=list)
    shm: Dict[str, int] = field(default_factory=dict)
    read: bool = False


def holdings(
    pids: Sequence[int],
    ends: float,
    gpus: Mapping[int, Sequence[Tuple[int, Optional[float]]]],
    proc: str = "/proc",
) -> Dict[int, Held]:
    """Look at each of `pids` until `ends` (monotonic); `gpus` is NVML's list by pid."""
    found: Dict[int, Held] = {}
    listening: Dict[str, Dict[int, int]] = {}
    for pid in pids:
        held = found[pid] = Held(gpus=list(gpus.get(pid, ())))
        if time.monotonic() > ends:
            continue
        held.read = True
        held.rss = _kib(procfs.read_or_none(f"{proc}/{pid}/status"), "VmRSS")
        held.pss = _kib(procfs.read_or_none(f"{proc}/{pid}/smaps_rollup"), "Pss")
        names = descriptors(pid, proc) or {}
        space = procfs.link(f"{proc}/{pid}/ns/net")
        if space not in listening:
            listening[space] = _listening(f"{proc}/{pid}/net")
        inodes = {
            int(name[8:-1])
            for name in names.values()
            if name.startswith("socket:[") and name[8:-1].isdecimal()
        }
        held.ports = sorted({port for inode, port in listening[space].items() if inode in inodes})[
            :ROWS_CAP
        ]
        held.locks = _locks(pid, names, ends, proc)
        held.shm = _shared(pid, names, proc)
    return found


def _listening(folder: str) -> Dict[int, int]:
    """Inode to port of each socket that listens in this network namespace."""
    rows = [
        row
        for name in ("tcp", "tcp6")
        for row in parse_inet("tcp", procfs.read_or_none(f"{folder}/{name}") or "")
        if row.state == "LISTEN"
    ]
    return {
        row.inode: int(row.local.rpartition(":")[2])
        for row in rows
        if row.local.rpartition(":")[2].isdecimal()
    }


def _locks(pid: int, names: Mapping[int, str], ends: float, proc: str) -> List[str]:
    found: List[str] = []
    for number, name in names.items():
        if (
            not name.startswith("/")
            or name.startswith("/dev/")
            or len(found) >= ROWS_CAP
            or time.monotonic() > ends
        ):
            continue
        if "\nlock:" in (procfs.read_page(f"{proc}/{pid}/fdinfo/{number}") or ""):
            found.append(name)
    return list(dict.fromkeys(found))


def _shared(pid: int, names: Mapping[int, str], proc: str) -> Dict[str, int]:
    """Segments of /dev/shm, the unlinked ones too, mapped or only open."""
    found: Dict[str, int] = {}
    try:
        text = procfs.read(f"{proc}/{pid}/maps", MAPS_CAP_BYTES)
    except OSError:
        text = ""
    for line in text.splitlines():
        columns = line.split(None, 5)
        if len(columns) == 6 and columns[5].startswith(SHM):
            low, _, high = columns[0].partition("-")
            found[columns[4]] = found.get(columns[4], 0) + int(high, 16) - int(low, 16)
    for number, name in names.items():
        if name.startswith(SHM):
            try:
                now = os.stat(f"{proc}/{pid}/fd/{number}")  # a memory file system answers at once
            except OSError:
                continue
            found[str(now.st_ino)] = now.st_blocks * 512
    return found


def _kib(text: Optional[str], name: str) -> Optional[int]:
    value = procfs.status_fields(text or "").get(name, "").split()
    return int(value[0]) * 1024 if value and value[0].isdecimal() else None
