"""The file systems that the job uses, and whether those that somebody else must answer for still
answer.

They are asked in a child process, which is left behind if it hangs in the kernel. Local ones are
asked only where a process that uses them sits in state D.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from trainprobe import mount_table
from trainprobe.collect import procfs
from trainprobe.collect.collector import Collector
from trainprobe.collect.descriptors import descriptors
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.collect.members import Member
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.mount_table import MountRow

MOUNTS_CAP = 64
PROBES_CAP = 24
NAMES_CAP = 1024
# the part of the whole time that the file systems have; the rest is for the child's own start
ASKING = 0.7
# Types that hold no files, or that mount something when they are looked at.
NEVER = frozenset(
    """
    autofs proc sysfs cgroup cgroup2 devpts mqueue bpf tracefs debugfs securityfs fusectl nsfs
    pstore
    """.split()
)


@dataclass(frozen=True)
class Mount(Fact):
    """One mount. `probe` is answered, timed_out, failed or not-tried: what became of a question for
    its size and one name in it, `took_s` seconds.

    `used_by` are the job's processes that have a file open on it or their working directory, as far
    as that can be seen: one that hangs while it opens a file has no descriptor yet.
    """

    path: str = ""
    fstype: str = ""
    device: str = ""
    remote: bool = False
    used_by: Tuple[int, ...] = ()
    probe: str = ""
    took_s: Optional[float] = None
    reason: str = ""


def read_mounts(
    members: Sequence[Member], deadline_s: float, proc: str = "/proc", also: Iterable[str] = ()
) -> LookResult:
    tables, used, stuck = _used(members, proc, also)
    if not any(rows for _, rows in tables.values()):
        reason = "no mounts could be read: the processes are gone or hidden"
        return refused("unavailable", reason, mounts=[])
    own_space = procfs.link(f"{proc}/self/ns/mnt")
    own_rows = mount_table.table_of("self", proc) if "" in tables else []
    own = {(row.device, row.point) for row in own_rows}
    found: List[Dict[str, Any]] = []
    asked: Dict[str, Dict[str, Any]] = {}
    for space, (pid, rows) in tables.items():
        # A later mount on the same point hides an earlier one.
        for row in {row.point: row for row in rows}.values():
            key = (space, row.number)
            if row.fstype in NEVER or not (row.remote or key in used):
                continue
            mount: Dict[str, Any] = {
                "path": row.point,
                "fstype": row.fstype,
                "device": row.source,
                "remote": row.remote,
                "used_by": sorted(used.get(key, ())),
            }
            wanted = row.remote or key in stuck
            # The namespace of another user is hidden.
            is_own = space == own_space or (not space and (row.device, row.point) in own)
            why_not = "a local file system that nobody hangs on"
            if wanted:
                why_not = f"only {PROBES_CAP} file systems are asked"
            mount["probe"] = {"outcome": "not-tried", "took_s": None, "reason": why_not}
            found.append(mount)
            if wanted and not is_own and not space:
                mount["probe"]["reason"] = "it lies in a mount namespace that is hidden from us"
            elif wanted and len(asked) < PROBES_CAP:
                asked[row.point if is_own else f"{proc}/{pid}/root{row.point}"] = mount
    _ask(asked, deadline_s)
    found.sort(key=lambda mount: (not mount["remote"], not mount["used_by"]))
    data: Dict[str, Any] = {"mounts": found[:MOUNTS_CAP]}
    if len(found) > MOUNTS_CAP:
        data["cut"] = len(found) - MOUNTS_CAP
    return LookResult(data)


Key = Tuple[str, str]  # mount namespace and number of the mount


def _used(
    members: Sequence[Member], proc: str, also: Iterable[str]
) -> Tuple[Dict[str, Tuple[int, List[MountRow]]], Dict[Key, Set[int]], Set[Key]]:
    """Return the table of each namespace with a pid in it, who uses which mount, and the mounts
    used by processes with a thread in state D.
    """
    tables: Dict[str, Tuple[int, List[MountRow]]] = {}
    used: Dict[Key, Set[int]] = {}
    stuck: Set[Key] = set()
    for member in members:
        space = procfs.link(f"{proc}/{member.pid}/ns/mnt")
        if space not in tables:
            tables[space] = (member.pid, mount_table.table_of(member.pid, proc))
        waits = "D" in procfs.thread_states(member.pid, proc)
        for name in _names(member.pid, proc, also):
            row = mount_table.of_path(tables[space][1], name)
            if row is not None and row.fstype not in NEVER:
                used.setdefault((space, row.number), set()).add(member.pid)
                if waits:
                    stuck.add((space, row.number))
    return tables, used, stuck


def _ask(asked: Dict[str, Dict[str, Any]], deadline_s: float) -> None:
    """Fill in `probe` of each mount, by the place to ask at."""
    if not asked:
        return
    from trainprobe.collect.child_programs import json_lines, run_child

    asking_s = round(deadline_s * ASKING, 3)
    ran = run_child("mounts_child", str(asking_s), *asked, timeout_s=deadline_s)
    answers = {
        str(answer.pop("path", "")): answer
        for answer in json_lines(ran.stdout)
        if answer.get("outcome") in ("answered", "failed")
    }
    left_behind = ", and SIGKILL does not end who asks it" if ran.ended.how == "unkillable" else ""
    hung = f"the file system gave no answer within {asking_s:g} s{left_behind}"
    for place, mount in asked.items():
        if ran.ended.how == "not_started":
            mount["probe"] = {"outcome": "not-tried", "took_s": None, "reason": ran.ended.reason}
        elif place in answers:
            mount["probe"] = answers[place]
        else:
            mount["probe"] = {"outcome": "timed_out", "took_s": asking_s, "reason": hung}


def _names(pid: int, proc: str, also: Iterable[str]) -> List[str]:
    names = [procfs.link(f"{proc}/{pid}/cwd"), procfs.link(f"{proc}/{pid}/exe"), *also]
    names += list((descriptors(pid, proc, NAMES_CAP) or {}).values())
    return [name for name in dict.fromkeys(names) if name.startswith("/")]


def parse_mounts(record: Evidence) -> List[Fact]:
    def mount(row: Mapping[str, Any]) -> Fact:
        probe = fields.part(row, "probe")
        return fields.fact(
            Mount,
            record,
            row,
            probe=fields.text(probe, "outcome"),
            took_s=fields.number(probe, "took_s"),
            reason=fields.text(probe, "reason"),
        )

    return fields.each(fields.items(record.data, "mounts"), mount)


COLLECTOR = Collector(
    "mounts",
    lambda job, deadline_s: read_mounts(job.members, deadline_s),
    deadline_s=1.0,
    source="/proc/PID/mountinfo",
    parse=parse_mounts,
    facts=(Mount,),
)
