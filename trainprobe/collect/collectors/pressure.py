"""How hard the host and the job's cgroups are pressed: stalls, throttling, load, and the CPUs
that the ranks may use. Made twice, since counters tell by their rise.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from dataclasses import fields as fields_of
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from trainprobe.collect import cgroup, procfs
from trainprobe.collect.collector import Collector
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.collect.members import Member
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

GROUPS_CAP = 16


PRESSED = 50.0  # percent (hangs.md, row 35)


@dataclass(frozen=True)
class Pressure(Fact):
    """Pressure between two looks. `cpu`, `memory` and `io` are the kernel's "some" shares of the
    last 10 s in percent, of `scope` host or cgroup.

    `throttled` counts the periods in which the cgroup ran out of CPU time between the looks,
    `throttled_s` how long its threads stood still for that (summed over CPUs), None where it has no
    quota or there was one look. `runnable` are the job's threads in state R, on average over the
    looks, `in_disk_wait` those in D. `usable_cpus` is what the ranks may use together (affinity and
    quota), `smallest_affinity` the CPUs of the rank with the fewest, `load` the load average of one
    minute, `looked_s` the time between the looks. `host` is told where the job was looked at on
    several.
    """

    scope: str = "host"
    cpu: Optional[float] = None
    memory: Optional[float] = None
    io: Optional[float] = None
    memory_full: Optional[float] = None
    io_full: Optional[float] = None
    throttled: Optional[int] = None
    load: Optional[float] = None
    usable_cpus: Optional[float] = None
    runnable: Optional[int] = None
    in_disk_wait: Optional[int] = None
    throttled_s: Optional[float] = None
    smallest_affinity: Optional[int] = None
    quota_cpus: Optional[float] = None
    looked_s: Optional[float] = None
    host: str = ""

    @property
    def throttled_share(self) -> float:
        """The share of the time between the looks in which the cgroup stood still for its quota,
        with all CPUs that the quota is worth.
        """
        if not self.throttled_s or not self.looked_s:
            return 0.0
        return self.throttled_s / self.looked_s / max(1.0, self.quota_cpus or 1.0)

    @property
    def pressed(self) -> bool:
        """Did some thread wait for a CPU in most of the last 10 s?"""
        return (self.cpu or 0.0) >= PRESSED


@dataclass(frozen=True)
class PressureLook(Pressure):
    """One look, before several become one pressure. Its counters are totals."""

    look: int = 1
    at: float = 0.0
    path: str = ""


def read_pressure(members: Sequence[Member], number: int, proc: str = "/proc") -> LookResult:
    if not os.path.exists(f"{proc}/loadavg"):
        return refused("unavailable", procfs.missing() or f"{proc} tells of no load", look=number)
    ranks = [member for member in members if member.role == "rank"] or list(members)
    cpus, smallest = _usable(ranks)
    groups = _groups(ranks, proc)
    quotas = [group["quota"] for group in groups if group["quota"] is not None]
    states = [state for member in members for state in procfs.thread_states(member.pid, proc)]
    load = (procfs.read_page(f"{proc}/loadavg") or "").split()
    data: Dict[str, Any] = {
        "look": number,
        "host": _stall_times(f"{proc}/pressure/{{}}"),
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
    return LookResult(data)


def parse_cpu_stat(text: str, version: int) -> Optional[Dict[str, float]]:
    """cpu.stat of a cgroup: periods with a quota, periods in which it ran out, and for how long its
    threads then stood still.

    Version 1 counts nanoseconds (`throttled_time`), version 2 microseconds (`throttled_usec`). None
    without a quota's counters.
    """
    counts = {
        columns[0]: int(columns[1])
        for columns in (line.split() for line in text.splitlines())
        if len(columns) == 2 and columns[1].isdecimal()
    }
    if "nr_throttled" not in counts:
        return None
    name, unit_s = ("throttled_time", 1e-9) if version == 1 else ("throttled_usec", 1e-6)
    return {
        "periods": counts.get("nr_periods", 0),
        "throttled": counts["nr_throttled"],
        "throttled_s": round(counts.get(name, 0) * unit_s, 6),
    }


def _groups(ranks: Sequence[Member], proc: str) -> List[Dict[str, Any]]:
    """The cgroups of the ranks up to the root, each once; a quota may lie on any of them."""
    found: Dict[str, Dict[str, Any]] = {}
    mountinfo = procfs.read_or_none(f"{proc}/self/mountinfo") or ""
    for membership in dict.fromkeys(
        procfs.read_page(f"{proc}/{member.pid}/cgroup") or "" for member in ranks
    ):
        groups = cgroup.resolve(membership, mountinfo)
        cpu, memory = groups.by_controller.get("cpu"), groups.memory
        if cpu is not None:
            for folder in cpu.up():
                text = procfs.read_page(f"{folder}/cpu.stat") or ""
                stat = parse_cpu_stat(text, cpu.version)
                if stat is not None and (stat["periods"] or folder == cpu.folder):
                    found.setdefault(folder, _group(folder, cpu.version))["cpu_stat"] = stat
            quota = cgroup.cpu_quota(cpu)
            found.setdefault(cpu.folder, _group(cpu.folder, cpu.version))["quota"] = quota
        for group in (cpu, memory):
            if group is not None and group.version == 2:
                stalls = _stall_times(f"{group.folder}/{{}}.pressure")
                found.setdefault(group.folder, _group(group.folder, 2))["pressure"] = stalls
    return list(found.values())[:GROUPS_CAP]


def _stall_times(path: str) -> Dict[str, Dict[str, float]]:
    texts = {name: procfs.read_page(path.format(name)) or "" for name in cgroup.PRESSURES}
    found = {name: cgroup.parse_pressure(text) for name, text in texts.items()}
    return {name: stalls for name, stalls in found.items() if stalls}


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


def parse_pressure(record: Evidence) -> List[Fact]:
    """One fact for the host, and one for each cgroup with values of its own."""
    data = record.data
    load = [value for value in fields.items(data, "load") if isinstance(value, (int, float))]
    common: Dict[str, Any] = {
        "evidence": (record.id,),
        "cell": record.cell,
        "look": fields.whole(data, "look") or 1,
        "at": record.began,
        "load": load[0] if load else None,
        "usable_cpus": fields.number(data, "usable_cpus"),
        "runnable": fields.whole(data, "runnable"),
        "in_disk_wait": fields.whole(data, "in_disk_wait"),
        "smallest_affinity": fields.whole(data, "smallest_affinity"),
    }
    found: List[Fact] = [
        PressureLook(
            **common,
            **_stalls(fields.part(data, "host")),
            quota_cpus=fields.number(data, "quota_cpus"),
        )
    ]

    def group(row: Mapping[str, Any]) -> Fact:
        stat = fields.part(row, "cpu_stat")
        return PressureLook(
            **common,
            **_stalls(fields.part(row, "pressure")),
            scope="cgroup",
            path=fields.text(row, "path"),
            throttled=fields.whole(stat, "throttled"),
            throttled_s=fields.number(stat, "throttled_s"),
            quota_cpus=fields.number(row, "quota"),
        )

    return found + fields.each(fields.items(data, "cgroups"), group)


def join_pressure(facts: List[Fact]) -> List[Fact]:
    """One pressure per cell, scope and cgroup: the last look, with the rise of counters."""
    by_place: Dict[Tuple[str, str, str, str], List[PressureLook]] = {}
    for fact in facts:
        if isinstance(fact, PressureLook):
            by_place.setdefault((fact.cell, fact.host, fact.scope, fact.path), []).append(fact)
    return [fact for fact in facts if not isinstance(fact, PressureLook)] + [
        _joined(sorted(looks, key=lambda look: look.look)) for looks in by_place.values()
    ]


def _joined(looks: List[PressureLook]) -> Pressure:
    first, last = looks[0], looks[-1]
    values: Dict[str, Any] = {each.name: getattr(last, each.name) for each in fields_of(Pressure)}
    values.update(
        evidence=tuple(dict.fromkeys(id_ for look in looks for id_ in look.evidence)),
        throttled=None,
        throttled_s=None,
        runnable=_mean([look.runnable for look in looks if look.runnable is not None]),
        in_disk_wait=_mean([look.in_disk_wait for look in looks if look.in_disk_wait is not None]),
    )
    if len(looks) > 1:
        for name in ("throttled", "throttled_s"):
            before, after = getattr(first, name), getattr(last, name)
            if before is not None and after is not None:
                values[name] = round(after - before, 6)
        values["looked_s"] = round(last.at - first.at, 3) if last.at > first.at > 0 else None
    return Pressure(**values)


def _mean(numbers: List[int]) -> Optional[int]:
    return round(sum(numbers) / len(numbers)) if numbers else None


def _stalls(data: Mapping[str, Any]) -> Dict[str, Any]:
    def share(name: str, kind: str) -> Optional[float]:
        return fields.number(fields.part(data, name), f"{kind}_avg10")

    shares = {name: share(name, "some") for name in cgroup.PRESSURES}
    return {**shares, **{f"{name}_full": share(name, "full") for name in ("memory", "io")}}


COLLECTOR = Collector(
    "pressure",
    lambda job, _: read_pressure(job.members, job.round),
    deadline_s=1.0,
    source="/proc/pressure, cgroup",
    rounds=("first", "second", "last"),
    parse=parse_pressure,
    join=join_pressure,
    facts=(Pressure,),
)
