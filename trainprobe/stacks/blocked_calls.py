"""The system call in which a thread sleeps, by the line of /proc/PID/syscall (proc(5)): its name,
and the descriptors or the child that it waits for.

Numbers are those of asm/unistd_64.h (x86-64) and asm-generic/unistd.h (arm64).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_NAMES = {
    "x86_64": {
        0: "read", 17: "pread64", 19: "readv", 45: "recvfrom", 47: "recvmsg", 43: "accept",
        288: "accept4", 1: "write", 18: "pwrite64", 20: "writev", 44: "sendto", 46: "sendmsg",
        42: "connect", 7: "poll", 271: "ppoll", 23: "select", 270: "pselect6", 232: "epoll_wait",
        281: "epoll_pwait", 61: "wait4", 247: "waitid",
    },
    "aarch64": {
        63: "read", 67: "pread64", 65: "readv", 207: "recvfrom", 212: "recvmsg", 202: "accept",
        242: "accept4", 64: "write", 68: "pwrite64", 66: "writev", 206: "sendto", 211: "sendmsg",
        203: "connect", 73: "ppoll", 72: "pselect6", 22: "epoll_pwait", 260: "wait4", 95: "waitid",
    },
}  # fmt: skip
_READS = frozenset("read pread64 readv recvfrom recvmsg accept accept4 connect".split())
_WRITES = frozenset("write pwrite64 writev sendto sendmsg".split())
_P_PID = 1  # waitid(2): the second argument is a pid
INT = 2**32


@dataclass(frozen=True)
class BlockedCall:
    """`reads` and `writes` are the descriptors that it waits to read from (a connect too) or to
    write to; `child` is the pid whose end it waits for, None for any child or another call.

    `name` is empty where the thread runs, or the kernel does not say.
    """

    name: str = ""
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    child: int | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys((*self.reads, *self.writes)))


def arguments(syscall: str) -> tuple[int, ...]:
    """The number of the call and its six arguments; () where the thread is in none."""
    try:
        number, *rest = syscall.split()[:7]
        return (int(number), *(int(word, 16) for word in rest)) if rest else ()
    except ValueError:
        return ()


def blocked_call(syscall: str, machine: str = "x86_64") -> BlockedCall:
    """What the line alone tells: of a poll only its name, since its descriptors lie in memory."""
    number, *rest = arguments(syscall) or (-1,)
    call = BlockedCall(_NAMES.get(machine, {}).get(number, ""))
    if not rest:
        return call
    if call.name in _READS:
        return replace(call, reads=(rest[0] % INT,))
    if call.name in _WRITES:
        return replace(call, writes=(rest[0] % INT,))
    if call.name == "wait4" and 0 < rest[0] % INT < INT // 2:
        return replace(call, child=rest[0] % INT)
    if call.name == "waitid" and rest[0] == _P_PID:
        return replace(call, child=rest[1] % INT)
    return call
