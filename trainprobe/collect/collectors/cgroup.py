"""Limits and counts of a cell's cgroups, before and after: `oom_killed` rests on the rise."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Dict, Iterable, List, Optional, Tuple

from trainprobe.collect.cgroup import Groups, Snapshot, find, rise, snapshot
from trainprobe.collect.collector import Collector, record_look
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.model import fields
from trainprobe.model.evidence import LIVE_CELL, Evidence
from trainprobe.model.facts import Fact

if TYPE_CHECKING:
    from trainprobe.case import Case


@dataclass(frozen=True)
class MemoryLimit(Fact):
    """The cgroup over one cell: the last look, with the highest peak and the sum of what was seen.

    `limit_bytes` None means no limit. `oom_kill_rise` is how many processes the kernel killed
    during the cell, None if not seen. `limit_hits` counts allocations that met the limit.
    `under_oom`: its processes stand still until memory is freed. `frozen`: the freezer has stopped
    them all. Both are None where nothing tells. `host` is set where the job was looked at on
    several.
    """

    version: int = 0
    path: str = ""
    limit_bytes: Optional[int] = None
    current_bytes: Optional[int] = None
    peak_bytes: Optional[int] = None
    oom_kill: Optional[int] = None
    oom_kill_rise: Optional[int] = None
    pids_max: Optional[int] = None
    cpu_quota: Optional[float] = None
    limit_hits: Optional[int] = None
    under_oom: Optional[bool] = None
    frozen: Optional[bool] = None
    host: str = ""


class CgroupWatch:
    """The groups of a cell. It is made before the cell starts and asked to `see` the processes
    while they live, since a process may move to a group of its own.

    `look()` records every group with its rise since it was first seen; `rise_of(pid)` is the rise
    of the group that `pid` was last seen in. `ours` says whether our own group is the cell's too,
    which it is not where somebody else started the job.
    """

    def __init__(self, *, ours: bool = True) -> None:
        self._own = find()
        self._groups: Dict[str, Groups] = {}
        self._before: Dict[str, Snapshot] = {}
        self._path_of: Dict[int, str] = {}
        self._host_before: Optional[int] = None
        self._own_path = self._add(self._own) if ours else ""
        first = self._before.get(self._own_path) or snapshot(self._own)
        self._host_before = None if first is None else first.host_oom_kill

    def see(self, pids: Iterable[int]) -> None:
        """Note where these processes are controlled. Costs one small read of /proc for each."""
        for pid in pids:
            groups = find(pid)
            # Version 1 shows a process that is ending in the root group, whatever group it was in
            # (cgroups(7)).
            if groups.memory is not None and (
                pid not in self._path_of or groups.memory.folder != groups.memory.top
            ):
                self._path_of[pid] = self._add(groups)

    def rise_of(self, pid: Optional[int]) -> Optional[int]:
        """Processes killed for memory in the group of `pid` so far; None where it is not known."""
        path = self._path_of.get(pid, self._own_path) if pid is not None else self._own_path
        before = self._before.get(path)
        return None if before is None else rise(before, snapshot(self._groups[path]))

    def host_rise(self) -> Optional[int]:
        """Processes killed for memory on the whole machine so far, other people's included."""
        now = snapshot(self._own)
        if now is None or now.host_oom_kill is None or self._host_before is None:
            return None
        return max(0, now.host_oom_kill - self._host_before)

    def look(self, case: Case, cell: str, when: str) -> List[Evidence]:
        """Record each group. `when` is `before` or `after`; the rise is recorded only after."""
        return record_look(case, COLLECTOR, lambda: self._results(when), cell=cell)

    def _results(self, when: str) -> List[LookResult]:
        if not self._before:
            reason = "no cgroup controls memory here, or /proc does not tell which"
            return [refused("unavailable", reason, version=0)]
        found = []
        for path, before in self._before.items():
            began, clock = time.time(), time.monotonic()
            now = snapshot(self._groups[path])
            # A group that was made for the cell may be gone with it: the first snapshot stands.
            gone = now is None or now.current_bytes is None
            result = LookResult(
                {
                    **dataclasses.asdict(now or before),
                    "when": when,
                    "oom_kill_rise": rise(before, now) if when == "after" else None,
                },
                "partial" if gone else "ok",
                f"the cgroup {path} is gone, so its counts are from before" if gone else "",
                source=path,
            )
            found.append(result.at(began, time.monotonic() - clock))
        return found

    def _add(self, groups: Groups) -> str:
        path = groups.memory.folder if groups.memory is not None else ""
        if path and path not in self._before:
            now = snapshot(groups)
            if now is not None:
                self._groups[path], self._before[path] = groups, now
        return path


def parse(record: Evidence) -> List[Fact]:
    return [fields.fact(MemoryLimit, record, host="")]


def join(facts: List[Fact]) -> List[Fact]:
    """One limit per cell, and per host of a job on several: the last look with the highest peak,
    and the rise as recorded, else the last count less the first.
    """
    by_place: Dict[Tuple[str, str], List[MemoryLimit]] = {}
    for fact in facts:
        if isinstance(fact, MemoryLimit):
            by_place.setdefault((fact.cell, fact.host), []).append(fact)
    return [fact for fact in facts if not isinstance(fact, MemoryLimit)] + [
        _joined(looks) for looks in by_place.values()
    ]


def _joined(looks: List[MemoryLimit]) -> MemoryLimit:
    last = looks[-1]
    rises = [look.oom_kill_rise for look in looks if look.oom_kill_rise is not None]
    counts = [look.oom_kill for look in looks if look.oom_kill is not None]
    killed = max(rises) if rises else counts[-1] - counts[0] if len(counts) > 1 else None
    if killed == 0 and last.cell.split("#")[0] == LIVE_CELL and (not counts or counts[-1] > 0):
        # Nobody watched the job before the first look: a kill that is already counted may have
        # been a rank's.
        killed = None
    peaks = [look.peak_bytes for look in looks if look.peak_bytes is not None]
    limits = [look.limit_bytes for look in looks if look.limit_bytes is not None]
    return dataclasses.replace(
        last,
        evidence=tuple(dict.fromkeys(id_ for look in looks for id_ in look.evidence)),
        peak_bytes=max(peaks, default=None),
        limit_bytes=limits[-1] if limits else None,
        oom_kill_rise=killed if killed is None or killed >= 0 else None,
    )


COLLECTOR = Collector(
    "cgroup",
    None,
    deadline_s=2.0,
    source="cgroup",
    rounds=(),
    parse=parse,
    join=join,
    facts=(MemoryLimit,),
)
