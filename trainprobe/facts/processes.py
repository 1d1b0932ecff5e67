"""What /proc said of each process."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class ProcessState(Fact):
    """One process as last seen. `state` is the letter of its main thread or itself (R S D T t Z).

    `cpu_moved` says whether the main thread used CPU time between looks, None when there was one look.
    `wchan` and `syscall` are the main thread's. `stopped_looks` counts the looks in which it was stopped (T or t).
    """

    pid: int = 0
    ppid: int | None = None
    role: str = "rank"
    state: str = ""
    wchan: str = ""
    syscall: str = ""
    threads: int = 0
    cpu_moved: bool | None = None
    rss_bytes: int = 0
    fds: int | None = None
    nofile_soft: int | None = None
    cmdline: str = ""
    tracer_pid: int = 0
    look: int = 1
    looks: int = 1
    stopped_looks: int = 0
    asleep_s: float | None = None


@dataclass(frozen=True)
class ProcessLook(ProcessState):
    """One look, before several of them become a state. It stands in no table."""

    ticks: int | None = None


def parse_process(record: Evidence) -> list[Fact]:
    data = record.data
    pid = fields.whole(data, "pid")
    if pid is None:
        pid = record.subject.pid
    if pid is None:
        raise fields.UnreadableError("a process without a pid")
    threads = fields.each(fields.items(data, "threads"), lambda row: row)
    main: Mapping[str, Any] = next((row for row in threads if row.get("tid") == pid), threads[0] if threads else {})
    state = fields.text(data, "state") or fields.text(main, "state")
    return [
        ProcessLook(
            evidence=(record.id,),
            cell=record.cell,
            rank=record.subject.rank,
            pid=pid,
            ppid=fields.whole(data, "ppid"),
            role=fields.text(data, "role") or record.subject.role or "rank",
            state=state[:1],
            wchan=fields.text(main, "wchan"),
            syscall=fields.text(main, "syscall"),
            threads=len(threads),
            rss_bytes=fields.whole(data, "rss_bytes") or 0,
            fds=fields.whole(data, "fds"),
            nofile_soft=fields.whole(data, "nofile_soft"),
            cmdline=fields.text(data, "cmdline"),
            tracer_pid=fields.whole(data, "tracer_pid") or 0,
            look=fields.whole(data, "look") or 1,
            asleep_s=fields.number(main, "asleep_s"),
            ticks=fields.whole(main, "cpu_ticks"),
        )
    ]


def join_processes(facts: list[Fact]) -> list[Fact]:
    """One state per process and cell: the last look, with what changed since the first."""
    by_process: dict[tuple[str, int], list[ProcessLook]] = {}
    for fact in facts:
        if isinstance(fact, ProcessLook):
            by_process.setdefault((fact.cell, fact.pid), []).append(fact)
    return [fact for fact in facts if not isinstance(fact, ProcessLook)] + [_joined(sorted(looks, key=lambda look: look.look)) for looks in by_process.values()]


def _joined(looks: list[ProcessLook]) -> ProcessState:
    last = looks[-1]
    ticks = [look.ticks for look in looks if look.ticks is not None]
    values = {name.name: getattr(last, name.name) for name in dataclasses.fields(ProcessState)}
    values.update(
        evidence=tuple(dict.fromkeys(id_ for look in looks for id_ in look.evidence)),
        cpu_moved=None if len(ticks) < 2 else ticks[-1] != ticks[0],
        looks=len(looks),
        stopped_looks=sum(look.state in ("T", "t") for look in looks),
        rank=next((look.rank for look in looks if look.rank is not None), None),
        fds=max((look.fds for look in looks if look.fds is not None), default=None),
        rss_bytes=max(look.rss_bytes for look in looks),
    )
    return ProcessState(**values)
