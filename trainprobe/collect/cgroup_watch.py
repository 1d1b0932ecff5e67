"""The cgroups of one cell, before and after: what the kernel killed in between is what
`oom_killed` rests on.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Dict, Iterable, List, Optional

from trainprobe.case import Case
from trainprobe.collect import cgroup
from trainprobe.collect.look_results import LookResult, record, refused
from trainprobe.collect.members import host_subject
from trainprobe.model.evidence import Evidence


class CgroupWatch:
    """Made before a cell starts; told of the cell's processes while they live, since a process may
    move to a group of its own.

    `look()` records every group with its rise since it was first seen; `rise_of(pid)` is the rise
    of the group that `pid` was last seen in.
    `ours` says whether our own group is the cell's too, which it is not where somebody else started
    the job.
    """

    def __init__(self, *, ours: bool = True) -> None:
        self._own = cgroup.find()
        self._groups: Dict[str, cgroup.Groups] = {}
        self._before: Dict[str, cgroup.Snapshot] = {}
        self._path_of: Dict[int, str] = {}
        self._host_before: Optional[int] = None
        self._own_path = self._add(self._own) if ours else ""
        first = self._before.get(self._own_path) or cgroup.snapshot(self._own)
        self._host_before = None if first is None else first.host_oom_kill

    def see(self, pids: Iterable[int]) -> None:
        """Note where these processes are controlled. Costs one small read of /proc for each."""
        for pid in pids:
            groups = cgroup.find(pid)
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
        return None if before is None else cgroup.rise(before, cgroup.snapshot(self._groups[path]))

    def host_rise(self) -> Optional[int]:
        """Processes killed for memory on the whole machine so far, other people's included."""
        now = cgroup.snapshot(self._own)
        if now is None or now.host_oom_kill is None or self._host_before is None:
            return None
        return max(0, now.host_oom_kill - self._host_before)

    def look(self, case: Case, cell: str, when: str) -> List[Evidence]:
        """Record one `cgroup` per group seen. `when` is `before` or `after`; the rise is told
        only after.
        """
        began = time.time()
        if not self._before:
            reason = "no cgroup controls memory here, or /proc does not tell which"
            return [
                record(
                    case,
                    "cgroup",
                    dataclasses.replace(refused("unavailable", reason, version=0), began=began),
                    subject=host_subject(),
                    cell=cell,
                )
            ]
        records = []
        for path, before in self._before.items():
            began, clock = time.time(), time.monotonic()
            now = cgroup.snapshot(self._groups[path])
            # A group that was made for the cell may be gone with it: what was seen first is all
            # there is.
            data: Dict[str, Any] = {
                **dataclasses.asdict(now or before),
                "when": when,
                "oom_kill_rise": cgroup.rise(before, now) if when == "after" else None,
            }
            gone = (
                LookResult(
                    data, "partial", f"the cgroup {path} is gone, so its counts are from before"
                )
                if now is None or now.current_bytes is None
                else LookResult(data)
            )
            seen = dataclasses.replace(gone, began=began, took_s=time.monotonic() - clock)
            records.append(
                record(case, "cgroup", seen, subject=host_subject(), cell=cell, source=path)
            )
        return records

    def _add(self, groups: cgroup.Groups) -> str:
        path = groups.memory.folder if groups.memory is not None else ""
        if path and path not in self._before:
            now = cgroup.snapshot(groups)
            if now is not None:
                self._groups[path], self._before[path] = groups, now
        return path
