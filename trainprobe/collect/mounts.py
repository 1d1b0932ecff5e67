"""The file systems that the job uses, and whether those that somebody else must answer for still answer.

They are asked in a child process, which is left behind if it hangs in the kernel. Local ones are asked only where a process that uses them sits in state D.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, Iterable, List, Sequence, Set, Tuple

from trainprobe.case import Case
from trainprobe.collect import mount_table, procfs
from trainprobe.collect.descriptors import descriptors
from trainprobe.collect.members import Member, host_subject
from trainprobe.collect.mount_table import MountRow
from trainprobe.collect.seen import Seen, record, refused, timed
from trainprobe.model.evidence import Evidence
from trainprobe.system.run import run

MOUNTS_CAP = 64
PROBES_CAP = 24
NAMES_CAP = 1024
KILL_S = 0.1
ASKING = 0.7  # the part of the whole time that the file systems have; the rest is for the child's own start
ASK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mounts_child.py")
# Types that hold no files, or that mount something when they are looked at.
NEVER = frozenset(("autofs", "proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue", "bpf", "tracefs", "debugfs", "securityfs", "fusectl", "nsfs", "pstore"))


def look_at_mounts(case: Case, cell: str, members: Sequence[Member], *, deadline_s: float = 1.0, proc: str = "/proc", also: Iterable[str] = ()) -> Evidence:
    """Record one `mounts`. `also` are paths of the job's command line, which may lie on a mount that no process has a file open on."""
    seen = timed(lambda: read_mounts(members, deadline_s, proc, also))
    return record(case, "mounts", seen, subject=host_subject(), cell=cell, source="/proc/PID/mountinfo")


def read_mounts(members: Sequence[Member], deadline_s: float, proc: str = "/proc", also: Iterable[str] = ()) -> Seen:
    """The same without a case."""
    tables, used, stuck = _used(members, proc, also)
    if not any(rows for _, rows in tables.values()):
        return refused("unavailable", "no mounts could be read: the processes are gone or hidden", mounts=[])
    here = _link(f"{proc}/self/ns/mnt")
    own = {(row.device, row.point) for row in mount_table.table_of("self", proc)} if "" in tables else set()
    found: List[Dict[str, Any]] = []
    asked: Dict[str, Dict[str, Any]] = {}
    for space, (pid, rows) in tables.items():
        for row in {row.point: row for row in rows}.values():  # a later mount on the same point hides an earlier one
            key = (space, row.number)
            if row.fstype in NEVER or not (row.remote or key in used):
                continue
            one: Dict[str, Any] = {"path": row.point, "fstype": row.fstype, "device": row.source, "remote": row.remote, "used_by": sorted(used.get(key, ()))}
            wanted = row.remote or key in stuck
            ours = space == here or (not space and (row.device, row.point) in own)  # another user's namespace is hidden
            why_not = f"only {PROBES_CAP} file systems are asked" if wanted else "a local file system that nobody hangs on"
            one["probe"] = {"outcome": "not-tried", "took_s": None, "reason": why_not}
            found.append(one)
            if wanted and not ours and not space:
                one["probe"]["reason"] = "it lies in a mount namespace that is hidden from us"
            elif wanted and len(asked) < PROBES_CAP:
                asked[row.point if ours else f"{proc}/{pid}/root{row.point}"] = one
    _ask(asked, deadline_s)
    found.sort(key=lambda one: (not one["remote"], not one["used_by"]))
    data: Dict[str, Any] = {"mounts": found[:MOUNTS_CAP]}
    if len(found) > MOUNTS_CAP:
        data["cut"] = len(found) - MOUNTS_CAP
    return Seen(data)


Key = Tuple[str, str]  # mount namespace and number of the mount


def _used(members: Sequence[Member], proc: str, also: Iterable[str]) -> Tuple[Dict[str, Tuple[int, List[MountRow]]], Dict[Key, Set[int]], Set[Key]]:
    """Return the table of each namespace with a pid in it, who uses which mount, and the mounts used by processes with a thread in state D."""
    tables: Dict[str, Tuple[int, List[MountRow]]] = {}
    used: Dict[Key, Set[int]] = {}
    stuck: Set[Key] = set()
    for member in members:
        space = _link(f"{proc}/{member.pid}/ns/mnt")
        if space not in tables:
            tables[space] = (member.pid, mount_table.table_of(member.pid, proc))
        waits = "D" in states_of(member.pid, proc)
        for name in _names(member.pid, proc, also):
            row = mount_table.of_path(tables[space][1], name)
            if row is not None and row.fstype not in NEVER:
                used.setdefault((space, row.number), set()).add(member.pid)
                if waits:
                    stuck.add((space, row.number))
    return tables, used, stuck


def states_of(pid: int, proc: str = "/proc") -> Set[str]:
    """The states of a process's threads."""
    found = set()
    try:
        for tid in os.listdir(f"{proc}/{pid}/task"):
            text = procfs.read_page(f"{proc}/{pid}/task/{tid}/stat")
            if text:
                found.add(procfs.parse_stat(text).state)
    except (OSError, ValueError):
        return found
    return found


def _ask(asked: Dict[str, Dict[str, Any]], deadline_s: float) -> None:
    """Fill in `probe` of each mount, by the place to ask at."""
    if not asked:
        return
    asking_s = round(deadline_s * ASKING, 3)
    ran = run([sys.executable, "-E", "-S", "-B", ASK, str(asking_s), *asked], timeout_s=deadline_s, cwd="/", kill_s=KILL_S)
    answers: Dict[str, Dict[str, Any]] = {}
    for line in ran.stdout.splitlines():
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if isinstance(answer, dict) and answer.get("outcome") in ("answered", "failed"):
            answers[str(answer.pop("path", ""))] = answer
    left_behind = ", and SIGKILL does not end who asks it" if ran.ended.how == "unkillable" else ""
    hung = f"the file system gave no answer within {asking_s:g} s{left_behind}"
    for place, one in asked.items():
        if ran.ended.how == "not_started":
            one["probe"] = {"outcome": "not-tried", "took_s": None, "reason": ran.ended.reason}
        elif place in answers:
            one["probe"] = answers[place]
        else:
            one["probe"] = {"outcome": "timed_out", "took_s": asking_s, "reason": hung}


def _names(pid: int, proc: str, also: Iterable[str]) -> List[str]:
    names = [_link(f"{proc}/{pid}/cwd"), _link(f"{proc}/{pid}/exe"), *also]
    names += list((descriptors(pid, proc, NAMES_CAP) or {}).values())
    return [name for name in dict.fromkeys(names) if name.startswith("/")]


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
