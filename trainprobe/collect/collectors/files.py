"""Open files and pipes of the job's processes, from /proc/PID/fd and fdinfo (proc_pid_fdinfo(5)).

A file on a network file system is never asked for its size: that could hang us as it hangs the job.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from trainprobe import mount_table
from trainprobe.collect import permission, procfs
from trainprobe.collect.collector import Collector
from trainprobe.collect.descriptors import Owners, command_of, descriptors, find_owners
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.collect.members import Member
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

OPEN_CAP = 512
OTHERS_CAP = 24
MAPS_CAP_BYTES = 16 * 2**20
DELETED = " (deleted)"
SHARED = (
    "/dev/shm/",  # noqa: S108 - compared with names in /proc, not written to
    "/memfd:",
    "/SYSV",
)
ACCESS = {os.O_RDONLY: "r", os.O_WRONLY: "w", os.O_RDWR: "rw"}


@dataclass(frozen=True)
class OpenFile(Fact):
    """One open file. `kind` is file, device or memory; `mode` r, w or rw; `pos` and `size` in
    bytes, None on a network file system (never asked).

    `deleted` says that its name is gone though the file is still open.
    """

    pid: int = 0
    fd: Optional[int] = None
    path: str = ""
    kind: str = ""
    inode: Optional[int] = None
    mode: str = ""
    pos: Optional[int] = None
    size: Optional[int] = None
    deleted: bool = False


@dataclass(frozen=True)
class PipeEnd(Fact):
    """One end of a pipe or FIFO. `other_pids` are the processes but this one with the other end
    open, as far as they may be looked at.

    `complete` says that all processes of the host were looked at, so that no other pid means that
    nobody else has it open. `strangers` are those that do not belong to the job, and `others` their
    command lines, in the same order.
    """

    pid: int = 0
    fd: Optional[int] = None
    path: str = ""
    inode: Optional[int] = None
    mode: str = ""
    other_pids: Tuple[int, ...] = ()
    complete: bool = False
    others: Tuple[str, ...] = ()
    strangers: Tuple[int, ...] = ()


@dataclass(frozen=True)
class Opened:
    """One descriptor. `name` is what /proc/PID/fd says; `kind` file, pipe, fifo, device or
    memory; `size` None where it may not be asked.
    """

    fd: int
    name: str
    kind: str
    mode: str
    pos: Optional[int]
    inode: Optional[int]
    size: Optional[int]


def read_files(
    members: Sequence[Member], deadline_s: float, proc: str = "/proc"
) -> List[LookResult]:
    """Return one result per member, in their order."""
    ends = time.monotonic() + deadline_s
    opened: Dict[int, Optional[List[Opened]]] = {}
    cut: Dict[int, int] = {}
    looked: List[LookResult] = []
    for member in members:
        began, clock = time.time(), time.monotonic()
        names = descriptors(member.pid, proc) if clock < ends else None
        hidden, names = names is None, names or {}
        askable = [fd for fd in names if not names[fd].startswith(("anon_inode:", "socket:["))]
        first = {fd: names[fd] for fd in askable[:OPEN_CAP]}
        opened[member.pid] = None if hidden else _opened(member.pid, first, proc)
        cut[member.pid] = max(0, len(askable) - OPEN_CAP)
        base = {
            "pid": member.pid,
            "rank": member.rank,
            "maps": None if hidden else _maps(member, proc),
            "others": len(names) - len(askable),
        }
        looked.append(LookResult(base, began=began, took_s=time.monotonic() - clock))
    join, commands, whole = _joined(opened, ends, proc)
    found = []
    for member, look in zip(members, looked):
        mine = opened[member.pid]
        rows = [_row(member.pid, each, join, commands) for each in mine or ()]
        data: Dict[str, Any] = {**look.data, "open": rows, "owners_complete": whole}
        if cut[member.pid]:
            data["cut"] = cut[member.pid]
        if mine is None:
            outcome, reason = _why_not(member, ends, proc)
            result = refused(outcome, reason, **data)
        else:
            result = LookResult(data)
        found.append(replace(result, began=look.began, took_s=look.took_s, subject=member.subject))
    return found


def _why_not(member: Member, ends: float, proc: str) -> Tuple[Any, str]:
    if not os.path.exists(f"{proc}/{member.pid}"):
        return "unavailable", f"process {member.pid} is gone"
    if time.monotonic() > ends:
        return "timed_out", "no time was left to look at this process's files"
    return "denied", f"its descriptors are hidden: {permission.why_refused(member.pid)}"


def _opened(pid: int, names: Dict[int, str], proc: str) -> List[Opened]:
    kinds = {row.number: row.fstype for row in mount_table.table_of(pid, proc)}
    found = []
    for fd, name in names.items():
        info = procfs.status_fields(procfs.read_page(f"{proc}/{pid}/fdinfo/{fd}") or "")
        flags, pos, inode = info.get("flags", ""), info.get("pos", ""), info.get("ino", "")
        mode = ACCESS.get(int(flags, 8) & os.O_ACCMODE, "") if flags.isdecimal() else ""
        local = kinds.get(info.get("mnt_id", "")) in mount_table.LOCAL
        kind, size = _kind(name, f"{proc}/{pid}/fd/{fd}" if local else "")
        if kind == "pipe" and name[6:-1].isdecimal():
            inode = name[6:-1]
        number = int(inode) if inode.isdecimal() else None
        at = int(pos) if pos.isdecimal() and kind == "file" else None
        found.append(Opened(fd, name, kind, mode, at, number, size))
    return found


def _kind(name: str, askable: str) -> Tuple[str, Optional[int]]:
    """Kind and size of a descriptor; `askable` is its path where a stat cannot hang, else ""."""
    if name.startswith("pipe:["):
        return "pipe", None
    try:
        found = os.stat(askable) if askable else None
    except OSError:
        found = None
    if name.startswith(SHARED):
        return "memory", found.st_size if found else None
    if found is None:
        return ("device" if name.startswith("/dev/") else "file"), None
    if stat.S_ISFIFO(found.st_mode):
        return "fifo", None
    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
        return "file", found.st_size
    return "device", None


# Name of a pipe to mode ("r", "w") to the pids that have that end open.
Ends = Dict[str, Dict[str, Set[int]]]


def _joined(
    opened: Dict[int, Optional[List[Opened]]], ends: float, proc: str
) -> Tuple[Ends, Dict[int, str], bool]:
    pipes: Ends = {}
    for pid, mine in opened.items():
        for look in mine or ():
            if look.kind in ("pipe", "fifo"):
                for mode in look.mode:
                    pipes.setdefault(look.name, {"r": set(), "w": set()})[mode].add(pid)
    outside: Owners = find_owners(set(pipes), opened, ends, proc)
    commands: Dict[int, str] = {}
    for name, holders in outside.by_name.items():
        for pid, fd in holders:
            info = procfs.status_fields(procfs.read_page(f"{proc}/{pid}/fdinfo/{fd}") or "")
            flags = info.get("flags", "")
            for mode in ACCESS.get(int(flags, 8) & os.O_ACCMODE, "") if flags.isdecimal() else "":
                pipes[name][mode].add(pid)
            commands.setdefault(pid, command_of(pid, proc))
    return pipes, commands, outside.whole


def _row(pid: int, opened: Opened, pipes: Ends, commands: Dict[int, str]) -> Dict[str, Any]:
    row: Dict[str, Any] = {
        "fd": opened.fd,
        "path": opened.name,
        "type": opened.kind,
        "inode": opened.inode,
        "mode": opened.mode,
        "pos": opened.pos,
        "size": opened.size,
    }
    if opened.kind == "file" and opened.name.endswith(DELETED):
        row.update(path=opened.name[: -len(DELETED)], deleted=True)
    if opened.name in pipes and opened.mode:
        ends = pipes[opened.name]["w" if opened.mode == "r" else "r"]
        row["other_pids"] = others = sorted(ends - {pid})[:OTHERS_CAP]
        strangers = {str(other): commands[other] for other in others if commands.get(other)}
        if strangers:
            row["other_commands"] = strangers
    return row


def _maps(member: Member, proc: str) -> Optional[int]:
    """How many memory maps a rank has, unless a thread in state D may hold the list's lock."""
    if member.role != "rank" or "D" in procfs.thread_states(member.pid, proc):
        return None
    try:
        return procfs.read(f"{proc}/{member.pid}/maps", MAPS_CAP_BYTES).count("\n")
    except OSError:
        return None


def parse_files(record: Evidence) -> List[Fact]:
    pid = fields.whole(record.data, "pid")
    if pid is None:
        raise fields.UnreadableError("open files without a pid")
    complete = fields.flag(record.data, "owners_complete") or False

    def opened(row: Mapping[str, Any]) -> Fact:
        kind = fields.text(row, "type")
        known: Dict[str, Any] = {"rank": record.subject.rank, "pid": pid}
        if kind in ("pipe", "fifo"):
            commands = {
                int(other): command
                for other, command in fields.part(row, "other_commands").items()
                if other.isdecimal() and isinstance(command, str)
            }
            known.update(others=tuple(commands.values()), strangers=tuple(commands))
            return fields.fact(PipeEnd, record, row, complete=complete, **known)
        return fields.fact(OpenFile, record, row, kind=kind, **known)

    return fields.each(fields.items(record.data, "open"), opened)


COLLECTOR = Collector(
    "files",
    lambda job, deadline_s: read_files(job.members, deadline_s),
    deadline_s=1.5,
    source="/proc/PID/fd",
    parse=parse_files,
    facts=(OpenFile, PipeEnd),
)
