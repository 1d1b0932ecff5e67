"""File locks of this host: who holds them and who waits, from /proc/locks (proc_locks(5)).

Locks that programs poll for (filelock, torch's FileBaton) are not in it, nor are locks that another
host of a network file system holds.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

from trainprobe.collect import procfs
from trainprobe.collect.collector import Collector
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

LOCKS_CAP = 400
DESCRIPTORS_CAP = 4096
HOLDERS_CAP = 32  # processes outside the job whose descriptors are read, the youngest first
Place = Tuple[str, int]  # device as /proc/locks prints it, and inode
# `2: -> FLOCK  ADVISORY  WRITE 8048 fe:00:2146427 0 EOF`: a waiter has the number of the lock that
# it waits for, and an arrow.
_LINE = re.compile(
    r"^\s*(\d+):\s*(->)?\s*([A-Z_]+)\s+\S+\s+(\S+)\s+(-?\d+)\s+([0-9a-fA-F]+:[0-9a-fA-F]+):(\d+)\s"
)


@dataclass(frozen=True)
class LockWait(Fact):
    """Process `pid` waits for a file lock that `holder_pid` holds (None where not known)."""

    pid: int = 0
    holder_pid: Optional[int] = None
    path: str = ""
    kind: str = ""
    device: str = ""
    inode: Optional[int] = None


@dataclass(frozen=True)
class HeldLock(Fact):
    """Process `pid` holds a lock on the file `path`. Processes that poll for it are not listed."""

    pid: int = 0
    path: str = ""
    kind: str = ""
    device: str = ""
    inode: Optional[int] = None
    mode: str = ""  # READ or WRITE


def read_locks(pids: Set[int]) -> LookResult:
    """Read the locks; first those that `pids` hold or that somebody waits for."""
    missing = procfs.missing()
    if missing:
        return refused("unavailable", missing)
    try:
        text = procfs.read("/proc/locks", 4 * 2**20)
    except PermissionError:
        return refused("denied", "/proc/locks is closed to us; run trainprobe as root")
    except OSError as error:
        return refused("unavailable", f"/proc/locks cannot be read: {error.strerror}")
    held, waiting, odd_lines = parse(text)
    wanted = {(lock["device"], lock["inode"]) for lock in waiting}
    held.sort(
        key=lambda lock: ((lock["device"], lock["inode"]) not in wanted, lock["pid"] not in pids)
    )
    data: Dict[str, Any] = {"held": held[:LOCKS_CAP], "waiting": waiting[:LOCKS_CAP]}
    if len(held) > LOCKS_CAP or len(waiting) > LOCKS_CAP:
        data["cut"] = max(0, len(held) - LOCKS_CAP) + max(0, len(waiting) - LOCKS_CAP)
    _add_paths(data["held"], data["waiting"], pids)
    return (
        LookResult(data, "partial", f"{odd_lines} lines of /proc/locks could not be understood")
        if odd_lines
        else LookResult(data)
    )


def parse(text: str) -> tuple[List[Dict[str, Any]], List[Dict[str, Any]], int]:
    """Return (held, waiting, unread lines). `pid` is below 1 in another pid namespace."""
    held: List[Dict[str, Any]] = []
    waiting: List[Dict[str, Any]] = []
    holders: Dict[str, int] = {}
    odd_lines = 0
    for line in text.splitlines():
        match = _LINE.match(line + " ")
        if match is None:
            # A lease without a file is printed as <none>; it blocks nobody.
            odd_lines += bool(line.strip()) and "<none>" not in line
            continue
        number, arrow, kind, mode, pid, device, inode = match.groups()
        lock: Dict[str, Any] = {
            "kind": kind,
            "mode": mode,
            "pid": int(pid),
            "device": device,
            "inode": int(inode),
            "path": None,
        }
        if arrow:
            waiting.append({**lock, "behind_pid": holders.get(number)})
        else:
            held.append(lock)
            holders[number] = lock["pid"]
    return held, waiting, odd_lines


def _add_paths(held: List[Dict[str, Any]], waiting: List[Dict[str, Any]], pids: Set[int]) -> None:
    """Fill in `path`, and `cmdline` of holders that somebody waits for."""
    wanted = {(lock["device"], lock["inode"]) for lock in waiting}
    askers = [
        lock
        for lock in [*held, *waiting]
        if lock["pid"] > 0 and ((lock["device"], lock["inode"]) in wanted or lock["pid"] in pids)
    ]
    # Who polls for a lock is no waiter of the kernel's: the path is then all that joins it to the
    # holder, whoever that is.
    writers = {lock["pid"] for lock in held if lock["pid"] > 0 and "WRITE" in lock["mode"]}
    others = sorted(writers - {lock["pid"] for lock in askers}, reverse=True)[:HOLDERS_CAP]
    askers += [lock for lock in held if lock["pid"] in others]
    paths: Dict[Place, str] = {}
    for pid in {lock["pid"] for lock in askers}:
        paths.update(
            _open_files(
                pid, {(lock["device"], lock["inode"]) for lock in askers if lock["pid"] == pid}
            )
        )
    for lock in [*held, *waiting]:
        lock["path"] = paths.get((lock["device"], lock["inode"]))
    for lock in held:
        if (lock["device"], lock["inode"]) in wanted and lock["pid"] > 0:
            lock["cmdline"] = _cmdline(lock["pid"])


def _open_files(pid: int, wanted: Set[Place]) -> Dict[Place, str]:
    """The paths of these open files, from fdinfo: stat would hang on a dead file system."""
    found: Dict[Place, str] = {}
    try:
        names = os.listdir(f"/proc/{pid}/fd")[:DESCRIPTORS_CAP]
    except OSError:
        return found
    devices = devices_of_mounts(procfs.read_or_none(f"/proc/{pid}/mountinfo") or "")
    for name in names:
        place = place_of(procfs.read_or_none(f"/proc/{pid}/fdinfo/{name}") or "", devices)
        if place is None or place not in wanted:
            continue
        try:
            found[place] = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
    return found


def devices_of_mounts(mountinfo: str) -> Dict[str, str]:
    """Mount id to device, in the form of /proc/locks: `27 1 254:0 / / …` gives {"27": "fe:00"}."""
    devices = {}
    for columns in (line.split(None, 3) for line in mountinfo.splitlines()):
        major, _, minor = columns[2].partition(":") if len(columns) > 3 else ("", "", "")
        if major.isdecimal() and minor.isdecimal():
            devices[columns[0]] = f"{int(major):02x}:{int(minor):02x}"
    return devices


def place_of(fdinfo: str, devices: Dict[str, str]) -> Optional[Place]:
    """Device and inode of /proc/PID/fdinfo/N, by its `ino:` line (Linux 5.14) or its lock."""
    lines = dict(line.split(":", 1) for line in fdinfo.splitlines() if ":" in line)
    inode, device = lines.get("ino", "").strip(), devices.get(lines.get("mnt_id", "").strip())
    if inode.isdecimal() and device:
        return device, int(inode)
    match = _LINE.match(lines.get("lock", "").strip() + " ")
    return (match.group(6), int(match.group(7))) if match else None


def _cmdline(pid: int) -> str:
    now = procfs.stat(pid)
    if now is None:
        return ""
    if now.state == "D":
        return f"[{now.name}]"
    return (procfs.read_or_none(f"/proc/{pid}/cmdline") or "").replace("\0", " ").strip()[
        :500
    ] or f"[{now.name}]"


def parse_locks(record: Evidence) -> List[Fact]:
    """Parse {held: […], waiting: […]}; a file's path may stand on either side only."""
    held = fields.each(fields.items(record.data, "held"), lambda row: row)
    paths = {
        (fields.text(row, "device"), fields.whole(row, "inode")): fields.text(row, "path")
        for row in held
        if row.get("path")
    }

    def wait(row: Mapping[str, Any]) -> Fact:
        if fields.whole(row, "pid") is None:
            raise fields.UnreadableError("a waiter without a pid")
        place = (fields.text(row, "device"), fields.whole(row, "inode"))
        behind = fields.whole(row, "behind_pid")
        return fields.fact(
            LockWait,
            record,
            row,
            # The kernel writes -1 or 0 for a holder that is no process here.
            holder_pid=behind if behind and behind > 0 else None,
            path=fields.text(row, "path") or paths.get(place, ""),
        )

    named = [row for row in held if row.get("path") and (fields.whole(row, "pid") or 0) > 0]
    return fields.each(fields.items(record.data, "waiting"), wait) + fields.each(
        named, lambda row: fields.fact(HeldLock, record, row)
    )


COLLECTOR = Collector(
    "locks",
    lambda job, _: read_locks({member.pid for member in job.members}),
    deadline_s=1.0,
    source="/proc/locks",
    parse=parse_locks,
    facts=(LockWait, HeldLock),
)
