"""A process of a job that runs on several hosts: a pid alone would mean another process on each
of them.
"""

from __future__ import annotations

_HOST_BITS = (
    40  # pids have 22 bits (pid_max of 64-bit kernels); numbers of JSON and of ours end at 63
)


class HostPid(int):
    """A pid with its host. It compares as a number that no process of another host has, and
    reads `36@node2`. Its plain number is `pid`.
    """

    pid: int
    host: str

    def __new__(cls, pid: int, host: str, place: int) -> HostPid:  # noqa: PYI034 - Self is newer than Python 3.9
        """`place` numbers the hosts of one case from 1."""
        made = super().__new__(cls, (place << _HOST_BITS) | pid)
        made.pid, made.host = pid, host
        return made

    def __str__(self) -> str:
        return f"{self.pid}@{self.host}"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


def names_a_pid(key: object) -> bool:
    """Whether a number under `key` in the data of a record is that of a process."""
    return isinstance(key, str) and (
        key in ("pid", "ppid", "pids", "used_by", "orphaned") or key.endswith(("_pid", "_pids"))
    )
