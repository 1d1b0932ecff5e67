"""What /proc said of each process."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks.blocked_calls import BlockedCall, blocked_call
from trainprobe.stacks.gpu_waits import is_of_cuda
from trainprobe.stacks.stillness import Stillness

QUEUED_LOOK_S = 3.0  # what is lost in less may be a burst
BUSY_S = 0.5  # of processor time between the looks: a thread that took less is no busy one
CROWD = 1.4  # threads of a rank that want to run at a time; one that computes has one
QUEUED = 0.2  # of the time: from then on waiting for a CPU slows a rank


@dataclass(frozen=True)
class ProcessState(Fact):
    """One process as last seen. `state` is the letter of its main thread or itself (R S D T t Z).

    `cpu_moved` says whether the main thread used CPU time between looks, None when there was one
    look.
    `wchan`, `syscall` and `kernel_stack` (innermost first, read as root only) are the main
    thread's. `stopped_looks` counts the looks in which it was stopped (T or t). `frozen` says that
    the freezer of its cgroup holds it, which is to be thawed and not to be sent SIGCONT. Between
    the first look and the last, `looked_s` apart: `cpu_s` of the main thread and `all_cpu_s` of all
    threads, ended ones too (both to 10 ms), `read_moved` (anything was read, from caches, pipes or
    sockets too), `wrote_bytes` (handed to write wherever it went, or dirtied through a memory map),
    `main_wrote_bytes` (what the main thread alone handed to write) and
    `read_bytes` (the same in bytes; what comes by recv(2) is not in it), `grew_bytes` (how far its
    resident memory rose) and `major_faults` (pages fetched from a disk). All None where there was
    one look or the kernel hid it.
    `looked_at` is when the last look began, Unix time in seconds. `stillness` is for how long its
    main thread has got no further (stacks.stillness), None where nobody judged it. `forked` says
    that it runs on in the memory that its parent had, False that it was started as a program.
    `used_s` is the processor time of its whole life, and `ended_children_s` that of its children
    that have ended. `slept_through` counts the looks that found it in the very sleep of the look
    before. `queued_s` is for how long its main thread could run, between the looks, and waited for
    a CPU, and `all_queued_s` the sum for all threads that lived through them. `thread_cpu_s` is
    what busy threads beside the main one took of the processor between the looks, by thread.
    `on_gpu` says that threads of the CUDA driver live in it.
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
    read_moved: bool | None = None
    wrote_bytes: int | None = None
    major_faults: int | None = None
    cpu_s: float | None = None
    all_cpu_s: float | None = None
    looked_s: float | None = None
    age_s: float | None = None
    uid: int | None = None
    oom_score_adj: int | None = None
    cpu_allowed: int | None = None
    switches: int | None = None
    kernel_stack: tuple[str, ...] = ()
    frozen: bool | None = None
    read_bytes: int | None = None
    grew_bytes: int | None = None
    looked_at: float | None = None
    stillness: Stillness | None = None
    forked: bool | None = None
    main_wrote_bytes: int | None = None
    call: BlockedCall | None = None
    thread_calls: tuple[tuple[int, str, str], ...] = ()
    used_s: float | None = None
    ended_children_s: float | None = None
    slept_through: int = 0
    queued_s: float | None = None
    all_queued_s: float | None = None
    thread_cpu_s: tuple[tuple[int, float], ...] = ()
    on_gpu: bool = False

    @property
    def blocked(self) -> BlockedCall:
        """What the main thread's call waits for; cases of before it was read have the line of
        x86-64 alone.
        """
        return self.call or blocked_call(self.syscall)


@dataclass(frozen=True)
class ProcessLook(ProcessState):
    """One look, before several of them become a state. It stands in no table."""

    ticks: int | None = None
    voluntary: int | None = None
    queued_ns: Mapping[int, int] = dataclasses.field(default_factory=dict)  # by thread
    thread_ticks: Mapping[int, int] = dataclasses.field(default_factory=dict)
    all_ticks: int | None = None
    clock_hz: int = 100
    at: float = 0.0
    majflt: int | None = None
    rchar: int | None = None
    wchar: int | None = None
    main_wchar: int | None = None
    write_bytes: int | None = None


def parse_process(record: Evidence) -> list[Fact]:
    data = record.data
    pid = fields.whole(data, "pid")
    if pid is None:
        pid = record.subject.pid
    if pid is None:
        raise fields.UnreadableError("a process without a pid")
    threads = fields.each(fields.items(data, "threads"), lambda row: row)
    main: Mapping[str, Any] = next(
        (row for row in threads if row.get("tid") == pid), threads[0] if threads else {}
    )
    io = fields.part(data, "io")
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
            age_s=fields.number(data, "age_s"),
            uid=fields.whole(data, "uid"),
            oom_score_adj=fields.whole(data, "oom_score_adj"),
            cpu_allowed=fields.whole(main, "cpu_allowed"),
            kernel_stack=fields.texts(main, "kernel_stack"),
            frozen=fields.flag(data, "frozen"),
            forked=fields.flag(data, "forked"),
            ticks=fields.whole(main, "cpu_ticks"),
            voluntary=fields.whole(main, "voluntary"),
            queued_ns={
                row["tid"]: row["queued_ns"]
                for row in threads
                if isinstance(row.get("tid"), int) and isinstance(row.get("queued_ns"), int)
            },
            thread_ticks={
                row["tid"]: row["cpu_ticks"]
                for row in threads
                if isinstance(row.get("tid"), int) and isinstance(row.get("cpu_ticks"), int)
            },
            all_ticks=fields.whole(data, "cpu_ticks"),
            used_s=_seconds(data, "cpu_ticks"),
            ended_children_s=_seconds(data, "ended_children_ticks"),
            clock_hz=fields.whole(data, "clock_hz") or 100,
            at=record.began,
            majflt=fields.whole(data, "majflt"),
            rchar=fields.whole(io, "rchar"),
            wchar=fields.whole(io, "wchar"),
            main_wchar=fields.whole(fields.part(main, "io"), "wchar"),
            write_bytes=fields.whole(io, "write_bytes"),
            call=_call(main),
            thread_calls=tuple(
                (row["tid"], fields.text(row, "wchan"), fields.text(row, "syscall"))
                for row in threads
                if isinstance(row.get("tid"), int) and row is not main and row.get("state") == "S"
            ),
            on_gpu=any(is_of_cuda(fields.text(row, "name")) for row in threads),
        )
    ]


def _seconds(data: Mapping[str, Any], name: str) -> float | None:
    ticks = fields.whole(data, name)
    return None if ticks is None else ticks / (fields.whole(data, "clock_hz") or 100)


def _call(main: Mapping[str, Any]) -> BlockedCall | None:
    if "call" not in main:
        return None
    row = fields.part(main, "call")
    return BlockedCall(
        fields.text(row, "name"),
        fields.wholes(row, "reads"),
        fields.wholes(row, "writes"),
        fields.whole(row, "child"),
    )


def queued_share(processes: Iterable[ProcessState | None]) -> float | None:
    """The share of the time between the looks in which a main thread could run and waited for a
    CPU, of the middle one of these processes; None where they were watched too shortly, or the
    kernel does not count that.
    """
    shares = [
        one.queued_s / one.looked_s
        for one in processes
        if one is not None
        and one.queued_s is not None
        and one.looked_s is not None
        and one.looked_s >= QUEUED_LOOK_S
    ]
    return median(shares) if shares else None


def threads_that_want_to_run(processes: Iterable[ProcessState]) -> float | None:
    """How many threads of these processes ran or waited for a CPU, on average between the looks;
    None where the kernel does not count that.
    """
    found = [
        (one.all_queued_s + (one.all_cpu_s or 0.0)) / one.looked_s
        for one in processes
        if one.all_queued_s is not None and one.looked_s
    ]
    return sum(found) if found else None


def crowd_themselves(ranks: Sequence[ProcessState | None], usable_cpus: float | None) -> bool:
    """Do the ranks' own threads alone want far more CPUs than there are for them? So do pools of
    OpenMP that are as large on each rank as if it were alone on the machine, or threads that poll.
    """
    wanting = threads_that_want_to_run(one for one in ranks if one is not None)
    if wanting is None or not usable_cpus:
        return False
    return wanting >= CROWD * max(usable_cpus, len(ranks))


_OF_A_STATE = tuple(field.name for field in dataclasses.fields(ProcessState))
_state_of = operator.attrgetter(*_OF_A_STATE)


def join_processes(facts: list[Fact]) -> list[Fact]:
    """One state per process and cell: the last look, with what changed since the first."""
    by_process: dict[tuple[str, int], list[ProcessLook]] = {}
    for fact in facts:
        if isinstance(fact, ProcessLook):
            by_process.setdefault((fact.cell, fact.pid), []).append(fact)
    return [fact for fact in facts if not isinstance(fact, ProcessLook)] + [
        _joined(sorted(looks, key=lambda look: look.look)) for looks in by_process.values()
    ]


def _joined(looks: list[ProcessLook]) -> ProcessState:
    first, last = looks[0], looks[-1]
    ticks = [look.ticks for look in looks if look.ticks is not None]
    read, used, used_by_all = (
        _rise(looks, "rchar"),
        _rise(looks, "ticks"),
        _rise(looks, "all_ticks"),
    )
    queued_s = {
        tid: max(0, last.queued_ns[tid] - before) / 1e9
        for tid, before in (first.queued_ns.items() if len(looks) > 1 else ())
        if tid in last.queued_ns
    }
    took_s = {
        tid: (last.thread_ticks[tid] - before) / last.clock_hz
        for tid, before in (first.thread_ticks.items() if len(looks) > 1 else ())
        if tid != last.pid and tid in last.thread_ticks
    }
    values = dict(zip(_OF_A_STATE, _state_of(last), strict=True))
    values.update(
        evidence=tuple(dict.fromkeys(id_ for look in looks for id_ in look.evidence)),
        cpu_moved=None if len(ticks) < 2 else ticks[-1] != ticks[0],
        # A look that stops a thread (py-spy) makes it run: only what was read before tells how long
        # it has slept.
        asleep_s=max((look.asleep_s for look in looks if look.asleep_s is not None), default=None),
        slept_through=sum(
            look.asleep_s is not None and look.asleep_s >= look.at - before.at > 0
            for before, look in pairwise(looks)
        ),
        # A long watch leaves looks out: their numbers tell how many there were.
        looks=max(len(looks), last.look - first.look + 1),
        stopped_looks=sum(look.state in ("T", "t") for look in looks),
        rank=next((look.rank for look in looks if look.rank is not None), None),
        fds=max((look.fds for look in looks if look.fds is not None), default=None),
        rss_bytes=max(look.rss_bytes for look in looks),
        read_moved=None if read is None else read > 0,
        read_bytes=read,
        grew_bytes=(
            max(0, looks[-1].rss_bytes - looks[0].rss_bytes)
            if len(looks) > 1 and looks[0].rss_bytes
            else None
        ),
        wrote_bytes=max(
            (
                rise
                for rise in (_rise(looks, "wchar"), _rise(looks, "write_bytes"))
                if rise is not None
            ),
            default=None,
        ),
        main_wrote_bytes=_rise(looks, "main_wchar"),
        major_faults=_rise(looks, "majflt"),
        cpu_s=None if used is None else used / last.clock_hz,
        all_cpu_s=None if used_by_all is None else used_by_all / last.clock_hz,
        switches=_rise(looks, "voluntary"),
        queued_s=queued_s.get(last.pid),
        all_queued_s=sum(queued_s.values()) if queued_s else None,
        thread_cpu_s=tuple((tid, used_s) for tid, used_s in took_s.items() if used_s >= BUSY_S),
        looked_at=last.at or None,
        looked_s=(
            round(last.at - first.at, 3) if len(looks) > 1 and last.at > first.at > 0 else None
        ),
    )
    return ProcessState(**values)


def _rise(looks: list[ProcessLook], name: str) -> int | None:
    """How far a counter came between the first look and the last that tell of it; None where
    fewer than two do.
    """
    told = [value for value in (getattr(look, name) for look in looks) if value is not None]
    return max(0, told[-1] - told[0]) if len(told) > 1 else None
