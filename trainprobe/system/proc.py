"""Processes by /proc, read without raising. Standard library only: the keeper uses it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from typing import NamedTuple, Optional, Set, Tuple

PIDFD_GET_INFO, PIDFD_INFO_EXIT = (
    0xC040FF0B,
    1 << 3,
)  # linux/pidfd.h; the exit status is kept there since Linux 6.15
CMDLINE_BYTES, ENVIRON_BYTES = 4096, 2**21


class Stat(NamedTuple):
    """Fields 3-6, 20, 22 and 52 of /proc/PID/stat; `status` is a wait status or None."""

    state: str
    ppid: int
    group: int
    session: int
    threads: int
    started_ticks: int
    status: Optional[int]

    @property
    def dead(self) -> bool:
        """A zombie leader whose other threads go on is not dead yet."""
        return self.state in "ZX" and self.threads <= 1


def read_file(path: str, limit: int) -> bytes:
    """Return the first `limit` bytes, empty where it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, limit)
    except OSError:
        return b""
    finally:
        os.close(fd)


def read_stat(pid: int) -> Optional[Stat]:
    """Return None when there is no such process. Count fields from the name's last bracket."""
    fields = read_file(f"/proc/{pid}/stat", 4096).rpartition(b")")[2].split()
    if len(fields) < 20:
        return None
    status = int(fields[49]) if len(fields) > 49 else None
    return Stat(
        fields[0].decode(),
        int(fields[1]),
        int(fields[2]),
        int(fields[3]),
        int(fields[17]),
        int(fields[19]),
        status,
    )


def listed_pids() -> Set[int]:
    """Return every pid that /proc shows us."""
    return {int(name) for name in os.listdir("/proc") if name.isdecimal()}


def read_cmdline(pid: int) -> Tuple[str, Optional[int], bool]:
    """Return the command line, RANK of the environment, and whether the environment could be read
    at all.

    A zombie has no command line any more: its name stands in square brackets, as ps shows it.
    """
    cmdline = b" ".join(read_file(f"/proc/{pid}/cmdline", CMDLINE_BYTES).rstrip(b"\0").split(b"\0"))
    if not cmdline:
        cmdline = b"[" + read_file(f"/proc/{pid}/comm", 64).strip() + b"]"
    environ = read_file(f"/proc/{pid}/environ", ENVIRON_BYTES)
    rank = None
    for entry in environ.split(b"\0"):
        if entry.startswith(b"RANK=") and entry[5:].isdigit() and len(entry) < 16:
            rank = int(entry[5:])
    return cmdline.decode("utf-8", "replace"), rank, bool(environ)


def kept_status(pidfd: int) -> Optional[int]:
    """Ask a new kernel for the wait status of a process that its parent has reaped already."""
    info = bytearray(struct.pack("=QQ12I", PIDFD_INFO_EXIT, *([0] * 13)))
    with contextlib.suppress(OSError):
        fcntl.ioctl(pidfd, PIDFD_GET_INFO, info)
        if struct.unpack_from("=Q", info)[0] & PIDFD_INFO_EXIT:
            return int(struct.unpack_from("=i", info, 60)[0])
    return None
