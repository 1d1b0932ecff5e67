"""The few files under /proc that several looks read, by hand: psutil is not needed for that."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

READ_CAP_BYTES = 256 * 1024
PAGE_BYTES = 16 * 1024
STOPPED_STATES = frozenset("Tt")
ENDED_STATES = frozenset("ZXx")
DIGITS_CAP = 40


@dataclass(frozen=True)
class Stat:
    """A line of /proc/PID/stat. `cpu_ticks` is user plus system time in clock ticks,
    `started_ticks` is since boot.

    A process's line sums its threads, the ended ones too; a thread's own line is under task/.
    `majflt` counts pages that came from a disk.
    `cpu` is the one that it last ran on, None where an old kernel does not say.
    `ended_children_ticks` is what children took that have ended and were waited for.
    """

    name: str
    state: str
    ppid: int
    cpu_ticks: int
    started_ticks: int
    minflt: int = 0
    majflt: int = 0
    cpu: Optional[int] = None
    start_stack: Optional[int] = None
    ended_children_ticks: int = 0


def read(path: str, cap_bytes: int = READ_CAP_BYTES) -> str:
    """Return the beginning of a small kernel file. Raises OSError."""
    with open(path, "rb", buffering=0) as handle:
        parts = []
        left = cap_bytes
        while left > 0:
            part = handle.read(min(left, 65536))
            if not part:
                break
            parts.append(part)
            left -= len(part)
    return b"".join(parts).decode("utf-8", "replace")


def read_or_none(path: str, cap_bytes: int = READ_CAP_BYTES) -> Optional[str]:
    try:
        return read(path, cap_bytes)
    except OSError:
        return None


def read_page(path: str) -> Optional[str]:
    """Read a file of one process or thread, which the kernel gives in one read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, PAGE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(fd)


def link(path: str) -> str:
    """Where a symbolic link of /proc or /sys points; empty where it is gone or hidden."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def number(text: str) -> Optional[int]:
    """None for `max`, for -1, for nothing, and for what no kernel counts up to."""
    return int(text) if text.isdecimal() and len(text) <= DIGITS_CAP else None


def thread_files(pid: int, name: str, proc: str = "/proc") -> List[str]:
    """The contents of /proc/PID/task/*/NAME, stripped."""
    try:
        tids = os.listdir(f"{proc}/{pid}/task")
    except OSError:
        return []
    texts = (read_page(f"{proc}/{pid}/task/{tid}/{name}") for tid in tids)
    return [text.strip() for text in texts if text and text.strip()]


def thread_states(pid: int, proc: str = "/proc") -> List[str]:
    """The states of a process's threads: R, S, D and so on."""
    after_names = (text.rpartition(")")[2].split() for text in thread_files(pid, "stat", proc))
    return [columns[0] for columns in after_names if columns]


def parse_schedstat(text: str) -> Tuple[Optional[int], Optional[int]]:
    """For how many nanoseconds a thread has run, and for how many it could run and waited for a
    CPU, since it began: /proc/PID/schedstat (sched-stats.rst). None where it is not counted.
    """
    numbers = text.split()
    return (number(numbers[0]), number(numbers[1])) if len(numbers) == 3 else (None, None)


def missing() -> str:
    """Say why there is nothing to read here, or return an empty string."""
    if os.path.exists("/proc/self/stat"):
        return ""
    return f"this system ({sys.platform}) has no Linux /proc"


def parse_stat(text: str) -> Stat:
    """Parse a line of /proc/PID/stat (proc(5)). Raises ValueError when it is none."""
    opened, closed = text.find("("), text.rfind(")")
    fields = text[closed + 1 :].split()
    if opened < 0 or closed < opened or len(fields) < 20:
        raise ValueError(f"no line of /proc/PID/stat: {text[:60]!r}")
    # Field 3 (state) is fields[0]; 4 is the parent, 10 and 12 are faults, 14 and 15 user and system
    # time, 16 and 17 those of ended children, 22 the start.
    ppid, user, system, of_user, of_system, started, minor, major = (
        int(fields[place]) for place in (1, 11, 12, 13, 14, 19, 7, 9)
    )
    cpu = int(fields[36]) if len(fields) > 36 and fields[36].isdecimal() else None
    # 28 is 0 for whoever may not trace the process.
    stack = (int(fields[25]) or None) if len(fields) > 25 and fields[25].isdecimal() else None
    name = text[opened + 1 : closed]
    ended = max(0, of_user + of_system)
    return Stat(name, fields[0], ppid, user + system, started, minor, major, cpu, stack, ended)


def stat(pid: int, tid: Optional[int] = None) -> Optional[Stat]:
    """The state of a process, or of one of its threads; None when it is gone or hidden."""
    path = f"/proc/{pid}/stat" if tid is None else f"/proc/{pid}/task/{tid}/stat"
    try:
        return parse_stat(read_page(path) or "")
    except ValueError:
        return None


def status_fields(text: str) -> Dict[str, str]:
    """Parse /proc/PID/status: a name, a colon, a value on each line."""
    fields = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields[name] = value.strip()
    return fields


def memory_bytes(name: str) -> Optional[int]:
    """A line of /proc/meminfo, such as MemTotal; None where there is none."""
    columns = status_fields(read_or_none("/proc/meminfo") or "").get(name, "").split()
    return int(columns[0]) * 1024 if columns and columns[0].isdecimal() else None


def gone(pid: int, started_ticks: Optional[int] = None) -> str:
    """Say why `pid` is not the living process that is meant; empty when it is."""
    now = stat(pid)
    if now is None:
        try:
            os.kill(pid, 0)
        except PermissionError:
            return (
                f"process {pid} is there but hidden from us (/proc is mounted with hidepid); look"
                " as its owner or as root"
            )
        except (OSError, OverflowError):
            return f"process {pid} is gone"
        return f"process {pid} could not be read"
    if started_ticks is not None and now.started_ticks != started_ticks:
        return f"process {pid} is gone and its number belongs to another process ({now.name}) now"
    if now.state in ENDED_STATES:
        return f"process {pid} has ended (zombie) and its parent {now.ppid} has not waited for it"
    return ""
