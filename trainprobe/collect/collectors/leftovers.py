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
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

from trainprobe.collect import cgroup, procfs
from trainprobe.collect.collector import Collector, record_look
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.collect.holdings import Held
    from trainprobe.targets.earlier_runs import Earlier
    from trainprobe.targets.process_table import Table

PROCESSES_CAP = 256
OTHERS_CAP = 32
COMMAND_CAP = 300
APART_S = 0.3
DEFAULT_PORT = 29500  # of torchrun and init_process_group's env:// (torch/distributed/run.py)


@dataclasses.dataclass(frozen=True)
class Leftover(Fact):
    """One process of an earlier run. `run` counts the runs from 0, oldest first; `role` is
    launcher, main, worker, child or tracker.

    `cpu_share` is in CPUs, sizes are in bytes, None where not measured. `gpus` is (index, bytes or
    None) for each GPU that it holds. `sure` is false for a
    worker that is joined to the run by its folder alone.
    """

    pid: int = 0
    ppid: int = 0
    run: int = 0
    role: str = ""
    sure: bool = True
    state: str = ""
    age_s: Optional[float] = None
    began: Optional[float] = None
    command: str = ""
    cpu_share: Optional[float] = None
    rss_bytes: Optional[int] = None
    pss_bytes: Optional[int] = None
    ports: Tuple[int, ...] = ()
    locks: Tuple[str, ...] = ()
    gpus: Tuple[Tuple[int, Optional[int]], ...] = ()
    shm_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class Restarter(Fact):
    """Who starts an earlier run again. `kind` is unit, user-unit, container, cron, supervisor,
    shell, launcher or parent.

    `seen_again` says that one of its processes ended and another came while we looked. `pid` is 0
    where it is no process.
    """

    kind: str = ""
    name: str = ""
    pid: int = 0
    seen_again: bool = False


@dataclasses.dataclass(frozen=True)
class OtherRun(Fact):
    """A process of another run that somebody (`why`) answers for: no leftover."""

    pid: int = 0
    state: str = ""
    command: str = ""
    why: str = ""


@dataclasses.dataclass(frozen=True)
class LeftoverLook(Fact):
    """What the look for earlier runs found in all. `port` is the one at which this run will meet,
    None where it takes a free one.

    `memory_bytes` is the least limit of this host or cgroup, `free_bytes` what is left of it,
    `cpus` how many may be used; `shm_bytes` is what the earlier runs hold in /dev/shm together.
    `cut` counts processes that are not listed.
    """

    kind: str = ""
    name: str = ""
    port: Optional[int] = None
    memory_bytes: Optional[int] = None
    free_bytes: Optional[int] = None
    cpus: Optional[float] = None
    shm_bytes: int = 0
    cut: int = 0


@dataclasses.dataclass(frozen=True)
class LeftoverSearch:
    """A program as it is started: argv, cwd, script, variables; and the look at GPUs."""

    argv: Sequence[str]
    cwd: str
    script: str = ""
    environ: Mapping[str, str] = dataclasses.field(default_factory=dict)
    gpus: Optional[LookResult] = None


def look_at_leftovers(case: Case, request: LeftoverSearch) -> None:
    """Record one `leftovers` about a program."""
    record_look(case, COLLECTOR, lambda: read_leftovers(request, COLLECTOR.deadline_s), cell="")


def read_leftovers(request: LeftoverSearch, deadline_s: float) -> LookResult:
    from trainprobe.collect.holdings import Held, holdings
    from trainprobe.targets.earlier_runs import find, runs_again, wanted_of
    from trainprobe.targets.process_table import snapshot

    missing = procfs.missing()
    if missing:
        return refused("unavailable", missing)
    wanted = wanted_of(request.argv, request.cwd, request.script)
    if wanted is None:
        return refused(
            "unavailable",
            "the command names no script, module or code by which its earlier runs could be known",
        )
    began = time.monotonic()
    own, uid = os.getpid(), os.getuid()
    table = snapshot()
    found = find(table, wanted, own, uid)
    rows = found.earlier[:PROCESSES_CAP]
    held: Dict[int, Held] = {}
    shares: Dict[int, float] = {}
    restarters = found.restarters
    if found.earlier or found.restarters:
        ticks = _ticks(rows)
        clock = time.monotonic()
        pids = [row.seen.pid for row in rows]
        held = holdings(pids, began + deadline_s - APART_S, _by_pid(request.gpus))
        time.sleep(max(0.0, APART_S - (time.monotonic() - clock)))
        restarters = runs_again(table, snapshot(), found, wanted, own, uid)
        apart_s, tick = time.monotonic() - clock, float(os.sysconf("SC_CLK_TCK"))
        shares = {
            pid: round((now - ticks[pid]) / tick / apart_s, 2)
            for pid, now in _ticks(rows).items()
            if pid in ticks
        }
    segments = {inode: size for each in held.values() for inode, size in each.shm.items()}
    data: Dict[str, Any] = {
        "program": {"kind": wanted.kind, "name": wanted.name[:COMMAND_CAP]},
        "needs": {"port": port_of(request.argv, request.environ)},
        **(_machine() if rows else {}),
        "processes": [
            _row(table, row, held.get(row.seen.pid, Held()), shares.get(row.seen.pid))
            for row in rows
        ],
        "others": [
            {
                "pid": other.seen.pid,
                "state": other.seen.state,
                "command": other.seen.cmdline[:COMMAND_CAP],
                "why": other.why,
            }
            for other in found.others[:OTHERS_CAP]
        ],
        "restarters": [dataclasses.asdict(restarter) for restarter in restarters],
        "shm_bytes": sum(segments.values()),
        "looked_s": round(time.monotonic() - began, 3),
    }
    if len(found.earlier) > PROCESSES_CAP:
        data["cut"] = len(found.earlier) - PROCESSES_CAP
    unread = sum(1 for each in held.values() if not each.read)
    if unread:
        return LookResult(data, "partial", f"no time was left to see what {unread} processes hold")
    return LookResult(data)


def port_of(argv: Sequence[str], environ: Mapping[str, str]) -> Optional[int]:
    """The port at which this run will meet; None where it takes a free one."""
    from trainprobe.targets.earlier_runs import command_in_proc
    from trainprobe.targets.programs import launcher_kind, option, program_of

    argv = command_in_proc(argv)
    rest = program_of(argv).rest if launcher_kind(argv) else ()
    port = (
        option(rest, "master-port", "main-process-port")
        or option(rest, "rdzv-endpoint").rpartition(":")[2]
        or environ.get("PET_MASTER_PORT", "")
    )
    if port.isdecimal():
        return int(port) or None
    alone = any(
        re.fullmatch(r"--standalone|--rdzv[-_](?:backend|endpoint).*", word) for word in rest
    )
    if launcher_kind(argv) == "torchrun" and not alone:
        return DEFAULT_PORT
    port = "" if launcher_kind(argv) else environ.get("MASTER_PORT", "")
    return int(port) if port.isdecimal() else None


def _ticks(rows: Sequence[Earlier]) -> Dict[int, int]:
    """CPU time of each process so far, in clock ticks; without those that are gone."""
    stats = {row.seen.pid: procfs.stat(row.seen.pid) for row in rows}
    return {pid: stat.cpu_ticks for pid, stat in stats.items() if stat is not None}


def _row(table: Table, row: Earlier, held: Held, share: Optional[float]) -> Dict[str, Any]:
    age_s = table.age_s(row.seen)
    return {
        "pid": row.seen.pid,
        "ppid": row.seen.ppid,
        "started_ticks": row.seen.started_ticks,
        "age_s": None if age_s is None else round(age_s, 1),
        "began": table.began(row.seen),
        "run": row.run,
        "role": row.role,
        "sure": row.sure,
        "state": row.seen.state,
        "command": row.seen.cmdline[:COMMAND_CAP],
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
        for process in device.get("processes", ()):
            found.setdefault(process["pid"], []).append(
                (device["index"], process.get("used_bytes"))
            )
    return found


def _machine() -> Dict[str, Any]:
    """Memory in bytes under the least limit, the part left, and the CPUs."""
    groups = cgroup.find()
    now = cgroup.snapshot(groups)
    total = procfs.memory_bytes("MemTotal")
    limits = [amount for amount in (now.limit_bytes if now is not None else None, total) if amount]
    quota = cgroup.cpu_quota(groups.by_controller.get("cpu"))
    cpus = float(len(os.sched_getaffinity(0)))
    return {
        "memory": {"limit_bytes": min(limits, default=None), "free_bytes": cgroup.headroom_bytes()},
        "cpus": min(cpus, quota) if quota else cpus,
    }


def parse(record: Evidence) -> List[Fact]:
    data = record.data
    memory, needs, program = (fields.part(data, name) for name in ("memory", "needs", "program"))

    def leftover(row: Mapping[str, Any]) -> Fact:
        if fields.whole(row, "pid") is None:
            raise fields.UnreadableError("a process without a pid")
        gpus = [
            (fields.whole(gpu, "index"), fields.whole(gpu, "used_bytes"))
            for gpu in fields.items(row, "gpus")
        ]
        known = tuple((index, used) for index, used in gpus if index is not None)
        return fields.fact(Leftover, record, row, gpus=known)

    look = fields.fact(
        LeftoverLook,
        record,
        kind=fields.text(program, "kind"),
        name=fields.text(program, "name"),
        port=fields.whole(needs, "port"),
        memory_bytes=fields.whole(memory, "limit_bytes"),
        free_bytes=fields.whole(memory, "free_bytes"),
    )
    return [
        look,
        *fields.each(fields.items(data, "processes"), leftover),
        *fields.each(
            fields.items(data, "restarters"), lambda row: fields.fact(Restarter, record, row)
        ),
        *fields.each(fields.items(data, "others"), lambda row: fields.fact(OtherRun, record, row)),
    ]


COLLECTOR = Collector(
    "leftovers",
    None,
    deadline_s=4.0,
    source="/proc",
    rounds=(),
    parse=parse,
    facts=(Leftover, LeftoverLook, OtherRun, Restarter),
)
