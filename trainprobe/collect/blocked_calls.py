"""In which system call a thread sleeps, with the descriptors of a poll, select or epoll.

Those of poll(2) and select(2) lie in the thread's memory, which is only read; those of epoll(7) in
/proc/PID/fdinfo. All of it is a hint: where reading is refused, the name of the call is left.
"""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from typing import Dict, List, Optional, Tuple

from trainprobe.collect import procfs
from trainprobe.collect.elf_memory import Memory
from trainprobe.stacks.blocked_calls import BlockedCall, arguments, blocked_call

MACHINE = os.uname().machine
POLLED_CAP = 64
SETS_CAP = 1024  # FD_SETSIZE
IN, OUT = 0x1 | 0x2, 0x4  # POLLIN, POLLPRI, POLLOUT; the same bits in epoll(7)
POLLFD = struct.Struct("=ihh")


def read_blocked_call(
    pid: int, syscall: str, machine: str = MACHINE
) -> Optional[Dict[str, object]]:
    """What a thread of `pid` waits for in the call of this line of /proc/PID/syscall; None where it
    is in none of the calls known here.
    """
    call = blocked_call(syscall, machine)
    if not call.name:
        return None
    try:
        reads, writes = _polled(pid, call, arguments(syscall)[1:])
    except (OSError, ValueError, struct.error):
        reads, writes = (), ()
    call = replace(call, reads=(*call.reads, *reads), writes=(*call.writes, *writes))
    return {
        "name": call.name,
        "reads": list(call.reads),
        "writes": list(call.writes),
        "child": call.child,
    }


def _polled(
    pid: int, call: BlockedCall, given: Tuple[int, ...]
) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    if call.name in ("poll", "ppoll"):
        with Memory(pid) as memory:
            rows = list(POLLFD.iter_unpack(_read(memory, given[0], min(given[1], POLLED_CAP) * 8)))
        return _sorted([(fd, events) for fd, events, _ in rows if fd >= 0])
    if call.name in ("select", "pselect6"):
        size = (min(given[0], SETS_CAP) + 63) // 64 * 8
        with Memory(pid) as memory:
            return _members(memory, given[1], size), _members(memory, given[2], size)
    if call.name in ("epoll_wait", "epoll_pwait"):
        return _sorted(_watched(procfs.read_page(f"/proc/{pid}/fdinfo/{given[0]}") or ""))
    return (), ()


def _watched(fdinfo: str) -> List[Tuple[int, int]]:
    """`tfd:        7 events:       19 …` for each descriptor of an epoll."""
    rows = (line.split() for line in fdinfo.splitlines() if line.startswith("tfd:"))
    return [(int(row[1]), int(row[3], 16)) for row in rows][:POLLED_CAP]


def _members(memory: Memory, address: int, size: int) -> Tuple[int, ...]:
    """The descriptors of an fd_set; the kernel empties it only when the call returns."""
    bits = int.from_bytes(_read(memory, address, size), "little") if address else 0
    return tuple(fd for fd in range(size * 8) if bits >> fd & 1)[:POLLED_CAP]


def _read(memory: Memory, address: int, size: int) -> bytes:
    return memory.read(address, size) if size else b""


def _sorted(rows: List[Tuple[int, int]]) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    return (
        tuple(fd for fd, events in rows if events & IN),
        tuple(fd for fd, events in rows if events & OUT),
    )
