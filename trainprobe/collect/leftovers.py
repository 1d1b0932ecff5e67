"""Earlier runs of the user's program: which processes, what they hold, and who starts them again.
Nothing is ended and no signal is sent.

Two looks some tenths of a second apart show what they burn, and whether the same command comes
again when one of them ends.
"""

from __future__ import annotations

import dataclasses
import os
import re
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from trainprobe.case import Case
from trainprobe.collect import cgroup, procfs
from trainprobe.collect.holdings import Held, holdings
from trainprobe.collect.look_results import LookResult, record, refused, side_by_side
from trainprobe.collect.members import host_subject
from trainprobe.model.evidence import Evidence
from trainprobe.targets.earlier_runs import (
    Earlier,
    Found,
    Wanted,
    as_seen,
    find,
    runs_it,
    wanted_of,
)
from trainprobe.targets.process_table import Table, snapshot
from trainprobe.targets.programs import launcher_kind, option, program_of
from trainprobe.targets.restarters import Restarter

PROCESSES_CAP = 256
OTHERS_CAP = 32
COMMAND_CAP = 300
APART_S = 0.3
DEFAULT_PORT = 29500  # of torchrun and init_process_group's env:// (torch/distributed/run.py)


@dataclasses.dataclass(frozen=True)
class LeftoverSearch:
    """A program: `argv` as it is started in `cwd`, its `script` where one is known, its
    variables, and what NVML was seen to say.
    """

    argv: Sequence[str]
    cwd: str
    script: str = ""
    environ: Mapping[str, str] = dataclasses.field(default_factory=dict)
    gpus: Optional[LookResult] = None


def look_at_leftovers(case: Case, asked: LeftoverSearch, *, deadline_s: float = 4.0) -> Evidence:
    """Record one `leftovers` about a program."""
    seen = side_by_side([lambda: read_leftovers(asked, deadline_s)], deadline_s + 0.5)[0]
    return record(case, "leftovers", seen, subject=host_subject(), cell="", source="/proc")


def read_leftovers(
    asked: LeftoverSearch,
    deadline_s: float = 4.0,
    *,
    proc: str = "/proc",
    own: int = 0,
    uid: int = -1,
) -> LookResult:
    """The same without a case. `own` is the process whose family is no earlier run (0:
    ourselves), `uid` whose processes count (-1: ours).
    """
    missing = procfs.missing() if proc == "/proc" else ""
    if missing:
        return refused("unavailable", missing)
    wanted = wanted_of(asked.argv, asked.cwd, asked.script)
    if wanted is None:
        return refused(
            "unavailable",
            "the command names no script, module or code by which its earlier runs could be known",
        )
    began = time.monotonic()
    own, uid = own or os.getpid(), os.getuid() if uid < 0 else uid
    table = snapshot(proc)
    found = find(table, wanted, own, uid)
    rows = found.earlier[:PROCESSES_CAP]
    held: Dict[int, Held] = {}
    shares: Dict[int, float] = {}
    again: Set[int] = set()
    if found.earlier or found.restarters:
        ticks = _ticks(rows, proc)
        clock = time.monotonic()
        held = holdings(
            [one.seen.pid for one in rows], began + deadline_s - APART_S, _by_pid(asked.gpus), proc
        )
        time.sleep(max(0.0, APART_S - (time.monotonic() - clock)))
        again = _came_again(table, found, wanted, own, uid)
        apart_s, tick = time.monotonic() - clock, float(os.sysconf("SC_CLK_TCK"))
        shares = {
            pid: round((now - ticks[pid]) / tick / apart_s, 2)
            for pid, now in _ticks(rows, proc).items()
            if pid in ticks
        }
    context = {
        "program": {"kind": wanted.kind, "name": wanted.name[:COMMAND_CAP]},
        "needs": {"port": port_of(asked.argv, asked.environ)},
        **(_machine() if rows else {}),
    }
    data: Dict[str, Any] = {
        **context,
        "processes": [
            _row(table, one, held.get(one.seen.pid, Held()), shares.get(one.seen.pid))
            for one in rows
        ],
        "others": [
            {
                "pid": one.seen.pid,
                "state": one.seen.state,
                "command": one.seen.cmdline[:COMMAND_CAP],
                "why": one.why,
            }
            for one in found.others[:OTHERS_CAP]
        ],
        "restarters": [dataclasses.asdict(one) for one in _restarters(found, again, table)],
        "shm_bytes": sum(
            {inode: size for one in held.values() for inode, size in one.shm.items()}.values()
        ),
        "looked_s": round(time.monotonic() - began, 3),
    }
    if len(found.earlier) > PROCESSES_CAP:
        data["cut"] = len(found.earlier) - PROCESSES_CAP
    unread = sum(1 for one in held.values() if not one.read)
    return (
        LookResult(data, "partial", f"no time was left to see what {unread} processes hold")
        if unread
        else LookResult(data)
    )


def port_of(argv: Sequence[str], environ: Mapping[str, str]) -> Optional[int]:
    """The port at which this run will meet: by its options, its environment, or torchrun's
    default; None where it takes a free one.
    """
    argv = as_seen(argv)
    rest = program_of(argv).rest if launcher_kind(argv) else ()
    told = (
        option(rest, "master-port", "main-process-port")
        or option(rest, "rdzv-endpoint").rpartition(":")[2]
        or environ.get("PET_MASTER_PORT", "")
    )
    if told.isdigit():
        return int(told) or None
    alone = any(
        re.fullmatch(r"--standalone|--rdzv[-_](?:backend|endpoint).*", word) for word in rest
    )
    if launcher_kind(argv) == "torchrun" and not alone:
        return DEFAULT_PORT
    told = "" if launcher_kind(argv) else environ.get("MASTER_PORT", "")
    return int(told) if told.isdigit() else None


def _ticks(rows: Sequence[Earlier], proc: str) -> Dict[int, int]:
    """CPU time of each process so far, in clock ticks; those that are gone are left out."""
    found = {}
    for one in rows:
        try:
            found[one.seen.pid] = procfs.parse_stat(
                procfs.read_page(f"{proc}/{one.seen.pid}/stat") or ""
            ).cpu_ticks
        except ValueError:
            continue
    return found


def _came_again(table: Table, found: Found, wanted: Wanted, own: int, uid: int) -> Set[int]:
    """The parents that have started the same command anew since the first look."""
    later = snapshot(table.proc)
    me = later.by_pid.get(own)
    family = {one.pid for one in later.descendants(me)} if me is not None else set()
    left = (
        {one.seen.pid for one in found.earlier}
        | {one.seen.ppid for one in found.earlier}
        | {one.pid for one in found.restarters}
    )
    fresh = [
        one
        for one in later.by_pid.values()
        if one.pid not in table.by_pid and one.pid not in family and one.ppid in left
    ]
    return {one.ppid for one in fresh if runs_it(one, wanted) and one.uid == uid}


def _restarters(found: Found, again: Set[int], table: Table) -> List[Restarter]:
    known = [dataclasses.replace(one, seen_again=one.pid in again) for one in found.restarters]
    others = again - {one.pid for one in known} - {0, 1}
    return known + [
        Restarter("parent", table.by_pid[pid].cmdline[:200], pid, seen_again=True)
        for pid in sorted(others)
        if pid in table.by_pid
    ]


def _row(table: Table, one: Earlier, held: Held, share: Optional[float]) -> Dict[str, Any]:
    age_s = table.age_s(one.seen)
    return {
        "pid": one.seen.pid,
        "ppid": one.seen.ppid,
        "started_ticks": one.seen.started_ticks,
        "age_s": None if age_s is None else round(age_s, 1),
        "began": table.began(one.seen),
        "run": one.run,
        "role": one.role,
        "sure": one.sure,
        "state": one.seen.state,
        "command": one.seen.cmdline[:COMMAND_CAP],
        "cpu_share": share,
        "rss_bytes": held.rss,
        "pss_bytes": held.pss,
        "ports": held.ports,
        "locks": held.locks,
        "gpus": [{"index": index, "used_bytes": used} for index, used in held.gpus],
        "shm_bytes": sum(held.shm.values()),
    }


def _by_pid(gpus: Optional[LookResult]) -> Dict[int, List[Tuple[int, Optional[float]]]]:
    found: Dict[int, List[Tuple[int, Optional[float]]]] = {}
    for device in (gpus.data.get("devices") or ()) if gpus is not None else ():
        for one in device.get("processes", ()):
            found.setdefault(one["pid"], []).append((device["index"], one.get("used_bytes")))
    return found


def _machine() -> Dict[str, Any]:
    """What there is to share: memory in bytes under the least limit, what is left of it, and
    CPUs.
    """
    groups = cgroup.find()
    now = cgroup.snapshot(groups)
    fields = (
        procfs.status_fields(procfs.read_or_none("/proc/meminfo") or "").get("MemTotal", "").split()
    )
    total = int(fields[0]) * 1024 if fields and fields[0].isdigit() else None
    limits = [amount for amount in (now.limit_bytes if now is not None else None, total) if amount]
    quota = cgroup.cpu_quota(groups.by_controller.get("cpu"))
    cpus = float(len(os.sched_getaffinity(0)))
    return {
        "memory": {"limit_bytes": min(limits, default=None), "free_bytes": cgroup.headroom_bytes()},
        "cpus": min(cpus, quota) if quota else cpus,
    }
