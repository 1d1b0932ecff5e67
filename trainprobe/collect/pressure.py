"""How hard the host and the job's cgroups are pressed: stalls, throttling, load, and the CPUs that the ranks may use. Made twice, since counters tell by their rise."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence, Set

from trainprobe.case import Case
from trainprobe.collect import cgroup, procfs
from trainprobe.collect.members import Member, host_subject
from trainprobe.collect.seen import Seen, record, refused, side_by_side
from trainprobe.model.evidence import Evidence

GROUPS_CAP = 16


def look_at_pressure(case: Case, cell: str, members: Sequence[Member], number: int, *, deadline_s: float = 1.0, proc: str = "/proc") -> Evidence:
    """Record one `pressure`; `number` counts the looks from 1."""
    seen = side_by_side([lambda: read_pressure(members, number, proc)], deadline_s)[0]
    return record(case, "pressure", seen, subject=host_subject(), cell=cell, source="/proc/pressure, cgroup")


def read_pressure(members: Sequence[Member], number: int, proc: str = "/proc") -> Seen:
    """The same without a case."""
    if not os.path.exists(f"{proc}/loadavg"):
        return refused("unavailable", procfs.missing() or f"{proc} tells of no load", look=number)
    ranks = [member for member in members if member.role == "rank"] or list(members)
    cpus, smallest = _usable(ranks)
    groups = _groups(ranks, proc)
    quotas = [group["quota"] for group in groups if group["quota"] is not None]
    states = [state for member in members for state in _states(member.pid, proc)]
    load = (procfs.read_page(f"{proc}/loadavg") or "").split()
    host = {name: cgroup.parse_pressure(procfs.read_page(f"{proc}/pressure/{name}") or "") for name in cgroup.PRESSURES}
    data: Dict[str, Any] = {
        "look": number,
        "host": {name: found for name, found in host.items() if found},
        "cgroups": groups,
        "load": [float(word) for word in load[:3]],
        "runnable_on_host": int(load[3].partition("/")[0]) if len(load) > 3 else None,
        "runnable": states.count("R"),
        "in_disk_wait": states.count("D"),
        "threads": len(states),
        "cpus": os.cpu_count(),
        "allowed_cpus": len(cpus) or None,
        "smallest_affinity": smallest,
        "quota_cpus": min(quotas, default=None),
        "usable_cpus": min([float(len(cpus)), *quotas]) if cpus else min(quotas, default=None),
    }
    return Seen(data)


def parse_cpu_stat(text: str, version: int) -> Optional[Dict[str, float]]:
    """cpu.stat of a cgroup: periods with a quota, periods in which it ran out, and for how long its threads then stood still.

    Version 1 counts nanoseconds (`throttled_time`), version 2 microseconds (`throttled_usec`). None without a quota's counters.
    """
    fields = {words[0]: int(words[1]) for words in (line.split() for line in text.splitlines()) if len(words) == 2 and words[1].isdigit()}
    if "nr_throttled" not in fields:
        return None
    time_s = fields.get("throttled_time", 0) / 1e9 if version == 1 else fields.get("throttled_usec", 0) / 1e6
    return {"periods": fields.get("nr_periods", 0), "throttled": fields["nr_throttled"], "throttled_s": round(time_s, 6)}


def _groups(ranks: Sequence[Member], proc: str) -> List[Dict[str, Any]]:
    """The cgroups of the ranks up to the root, each once; a quota may lie on any of them."""
    found: Dict[str, Dict[str, Any]] = {}
    mountinfo = procfs.read_or_none(f"{proc}/self/mountinfo") or ""
    for membership in dict.fromkeys(procfs.read_page(f"{proc}/{member.pid}/cgroup") or "" for member in ranks):
        groups = cgroup.resolve(membership, mountinfo)
        cpu, memory = groups.by_controller.get("cpu"), groups.memory
        for folder in cpu.up() if cpu is not None else ():
            stat = parse_cpu_stat(procfs.read_page(f"{folder}/cpu.stat") or "", cpu.version if cpu is not None else 2)
            if stat is not None and (stat["periods"] or folder == (cpu.folder if cpu is not None else "")):
                found.setdefault(folder, _group(folder, cpu.version if cpu is not None else 2))["cpu_stat"] = stat
        if cpu is not None:
            found.setdefault(cpu.folder, _group(cpu.folder, cpu.version))["quota"] = cgroup.cpu_quota(cpu)
        for group in (cpu, memory):
            if group is not None and group.version == 2:
                stalls = {name: cgroup.parse_pressure(procfs.read_page(f"{group.folder}/{name}.pressure") or "") for name in cgroup.PRESSURES}
                found.setdefault(group.folder, _group(group.folder, 2))["pressure"] = {name: one for name, one in stalls.items() if one}
    return list(found.values())[:GROUPS_CAP]


def _group(folder: str, version: int) -> Dict[str, Any]:
    return {"path": folder, "version": version, "quota": None, "cpu_stat": None, "pressure": {}}


def _usable(ranks: Sequence[Member]) -> tuple[Set[int], Optional[int]]:
    """The CPUs that the ranks may run on together, and how many the one with the fewest may."""
    together: Set[int] = set()
    smallest: Optional[int] = None
    for member in ranks:
        try:
            own = os.sched_getaffinity(member.pid)
        except (OSError, AttributeError):
            continue
        together |= own
        smallest = len(own) if smallest is None else min(smallest, len(own))
    return together, smallest


def _states(pid: int, proc: str) -> List[str]:
    try:
        tids = os.listdir(f"{proc}/{pid}/task")
    except OSError:
        return []
    texts = (procfs.read_page(f"{proc}/{pid}/task/{tid}/stat") for tid in tids)
    return [text.rpartition(")")[2].split(None, 1)[0] for text in texts if text and text.rpartition(")")[2].strip()]
