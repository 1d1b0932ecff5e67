"""Which ranks live on while a job is looked at, and how those ended that do not.

A pidfd means its process also after the number is free again, and shows its end at once
(pidfd_open(2), Linux 5.3). From Linux 6.15 on it tells the exit status too, to whoever holds it and
after the parent has taken it (PIDFD_GET_INFO, include/uapi/linux/pidfd.h). Where there is none,
/proc tells that a process is gone, and nothing tells how it ended.
"""

from __future__ import annotations

import fcntl
import os
import resource
import select
import struct
import threading
import time
from collections.abc import Sequence

from trainprobe.collect import procfs
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Ended
from trainprobe.system.child import ended_from_status
from trainprobe.targets.process_table import snapshot

ROLES = ("rank", "launcher")
SPARE_FDS = 256  # what the other looks may need of the limit on open files
INFO_BYTES = 64  # PIDFD_INFO_SIZE_VER0
# _IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info)
GET_INFO = 3 << 30 | INFO_BYTES << 16 | 0xFF << 8 | 11
INFO_EXIT = 1 << 3
EXIT_CODE_AT = 60


class Lives:
    """The ranks and launchers of one job, by pid and start. Whoever has been seen to end stays
    ended.

    A thread waits for the ends, so that they are known in their order: the first to die is to
    blame, and a launcher ends the others at once.
    """

    def __init__(self) -> None:
        self._held: dict[Member, int | None] = {}
        self._ended: dict[Member, float] = {}
        self._by_fd: dict[int, Member] = {}
        self._ends = select.epoll()
        self._over, self._close = os.pipe()
        self._ends.register(self._over, select.EPOLLIN)
        self._waiter = threading.Thread(target=self._wait, name="trainprobe-lives", daemon=True)
        self._waiter.start()

    def hold(self, members: Sequence[Member]) -> None:
        """Watch these too, except those that ended before they could be watched."""
        room = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_FDS
        for member in members:
            if member.role not in ROLES or member in self._held:
                continue
            held = _open(member) if len(self._held) < room else None
            if is_over(
                member
            ):  # after the opening: a number reused in between would be somebody else's
                if held is not None:
                    os.close(held)
                continue
            self._held[member] = held
            if held is not None:
                self._by_fd[held] = member
                self._ends.register(held, select.EPOLLIN)

    def check(self) -> None:
        """Ask /proc too: not everybody has a pidfd."""
        for member in self._held:
            if member not in self._ended and is_over(member):
                self._ended.setdefault(member, time.time())

    def _wait(self) -> None:
        while True:
            for fd, _ in self._ends.poll():
                if fd == self._over:
                    return
                self._ended.setdefault(self._by_fd[fd], time.time())
                self._ends.unregister(fd)

    @property
    def ended(self) -> frozenset[Member]:
        return frozenset(self._ended.copy())

    def all_ended(self, role: str = "rank") -> bool:
        """Say whether nobody of that role lives, of those that did."""
        held = [member for member in self._held if member.role == role]
        return bool(held) and all(member in self._ended for member in held)

    def over(self) -> bool:
        """Say whether nobody is left to look at. A launcher may start its ranks again."""
        return all(
            self.all_ended(role)
            for role in ROLES
            if any(member.role == role for member in self._held)
        ) and bool(self._ended)

    def endings(self) -> list[tuple[Member, Ended]]:
        """Return how each of those ended, in the order in which they did."""
        return [
            (member, _ending(member, self._held[member], at))
            for member, at in self._ended.copy().items()
        ]

    def close(self) -> None:
        os.write(self._close, b".")
        self._waiter.join()
        self._ends.close()
        os.close(self._over)
        os.close(self._close)
        for held in self._held.values():
            if held is not None:
                os.close(held)
        self._held.clear()


def _open(member: Member) -> int | None:
    try:
        return os.pidfd_open(member.pid)
    except (OSError, AttributeError):
        return None


def is_over(member: Member) -> bool:
    """Say whether it is gone, a zombie, or its pid reused. A hidden process is not over."""
    now = procfs.stat(member.pid)
    if now is not None:
        return now.state in procfs.ENDED_STATES or member.started_ticks not in (
            None,
            now.started_ticks,
        )
    try:
        os.kill(member.pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _ending(member: Member, held: int | None, at: float) -> Ended:
    status = exit_status(held) if held is not None else None
    if status is None:
        row = snapshot().by_pid.get(member.pid)
        status = (
            row.wait_status
            if row is not None and member.started_ticks in (None, row.started_ticks)
            else None
        )
    if status is not None:
        return ended_from_status(status, at=at, seen_by="proc")
    return Ended(
        "exited",
        at=at,
        seen_by="nobody",
        reason="its parent has taken its exit status, and this kernel tells it to nobody else",
    )


def exit_status(held: int) -> int | None:
    """Return the wait status of a reaped process; None before that and before Linux 6.15."""
    info = bytearray(struct.pack("=Q", INFO_EXIT).ljust(INFO_BYTES, b"\0"))
    try:
        fcntl.ioctl(held, GET_INFO, info)
    except OSError:
        return None
    answer, status = (
        struct.unpack_from("=Q", info)[0],
        struct.unpack_from("=i", info, EXIT_CODE_AT)[0],
    )
    return int(status) if answer & INFO_EXIT else None
