"""What a live job is: its launcher, its world, and who its ranks are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from trainprobe.model import fields
from trainprobe.model.evidence import LIVE_CELL, Evidence
from trainprobe.model.facts import Fact
from trainprobe.model.unnumbered import number_of

# no job has more ranks; a number beyond is nonsense, and the judgement counts up to it
WORLD_CAP = 1_000_000


@dataclass(frozen=True)
class Process:
    """A process beside the ranks: role and rank that it serves, where known; `age_s` in seconds."""

    pid: int = 0
    role: str = ""
    rank: int | None = None
    ppid: int | None = None
    attempt: int | None = None
    cmdline: str = ""
    age_s: float | None = None


@dataclass(frozen=True)
class Job(Fact):
    """The job as a whole. `absent` are ranks of the world that were not seen on this host;
    `elsewhere` says that they may live on another.

    `hosts` are those that it was looked at on, where they are several, `silent` those that gave no
    answer, each with a sentence, `claimed` ranks that more than one of them has. `began` is Unix
    time in seconds. `environment` holds an allow-list of variables by rank, or under "job".
    `torch` is False for a single process without a rank that has no libtorch in memory. `below` is
    the wrapper, as `bash 4711`, that was asked for and has only this job below it. `orphaned` are
    the pids of ranks whose launcher is gone. `own_stores` are the ports of stores that it made.
    """

    launcher: str = ""
    launcher_pid: int | None = None
    launcher_cmdline: str = ""
    world_size: int | None = None
    world_size_source: str = ""
    host: str = ""
    script: str = ""
    cwd: str = ""
    python: str = ""
    began: float | None = None
    attempt: int | None = None
    nnodes: int | None = None
    hosts: tuple[str, ...] = ()
    silent: tuple[tuple[str, str], ...] = ()
    absent: tuple[int, ...] = ()
    elsewhere: bool = False
    claimed: dict[int, tuple[str, ...]] = field(default_factory=dict)
    others: tuple[Process, ...] = ()
    earlier_attempts: tuple[Process, ...] = ()
    leftovers: tuple[Process, ...] = ()
    container: str = ""
    backend: str = ""
    device: str = ""
    torch: bool | None = None
    environment: dict[str, dict[str, str]] = field(default_factory=dict)
    below: str = ""
    orphaned: tuple[int, ...] = ()
    own_stores: frozenset[str] = frozenset()

    @cached_property  # each of a job's connections asks for them
    def store_ports(self) -> frozenset[str]:
        """The ports of the job's store, as its ranks were told them, and of those that it made."""
        told = self.environment.values()
        return self.own_stores.union(row["MASTER_PORT"] for row in told if "MASTER_PORT" in row)


@dataclass(frozen=True)
class JobRank(Fact):
    """One rank of a live job. `rank_source` says where its number comes from."""

    pid: int = 0
    host: str = ""
    rank_source: str = ""
    local_rank: int | None = None
    attempt: int | None = None
    started_ticks: int | None = None
    cmdline: str = ""


def parse_job(record: Evidence) -> list[Fact]:
    """Read a `job` record: one Job, and a JobRank for each process that is a rank. Numbers that
    no rank can have count as unknown.
    """
    data = record.data
    launcher = fields.part(data, "launcher")
    cell = record.cell or fields.text(data, "cell") or LIVE_CELL
    environment = {
        str(who): {str(name): str(value) for name, value in values.items()}
        for who, values in fields.part(data, "environment").items()
        if isinstance(values, Mapping)
    }
    job = Job(
        evidence=(record.id,),
        cell=cell,
        launcher=fields.text(launcher, "kind") or "bare",
        launcher_pid=fields.whole(launcher, "pid"),
        launcher_cmdline=fields.text(launcher, "cmdline"),
        world_size=_within(fields.whole(data, "world_size"), 1),
        world_size_source=fields.text(data, "world_size_source"),
        host=fields.text(data, "host"),
        script=fields.text(data, "script"),
        cwd=fields.text(data, "cwd"),
        python=fields.text(data, "python"),
        began=fields.number(data, "began"),
        attempt=fields.whole(data, "attempt"),
        nnodes=_within(fields.whole(data, "nnodes"), 1),
        absent=tuple(rank for rank in fields.wholes(data, "absent") if 0 <= rank < WORLD_CAP),
        elsewhere=fields.flag(data, "elsewhere") or False,
        others=_processes(data, "others"),
        earlier_attempts=_processes(data, "earlier_attempts"),
        leftovers=_processes(data, "leftovers"),
        container=fields.text(data, "container"),
        backend=fields.text(data, "backend"),
        device=fields.text(data, "device"),
        torch=fields.flag(data, "torch"),
        environment=environment,
        below=fields.text(data, "below"),
        orphaned=fields.wholes(data, "orphaned"),
    )

    def rank(row: Mapping[str, Any]) -> JobRank:
        return JobRank(
            evidence=(record.id,),
            cell=cell,
            rank=_within(fields.whole(row, "rank"), 0),
            pid=_pid(row),
            host=fields.text(data, "host"),
            rank_source=fields.text(row, "rank_source"),
            local_rank=fields.whole(row, "local_rank"),
            attempt=fields.whole(row, "attempt"),
            started_ticks=fields.whole(row, "started_ticks"),
            cmdline=fields.text(row, "cmdline"),
        )

    ranks: dict[int, JobRank] = {}
    for one in fields.each(fields.items(data, "ranks"), rank):
        ranks.setdefault(one.pid, one)
    return [job, *ranks.values()]


def join_unnumbered(facts: list[Fact]) -> list[Fact]:
    """Give each process of a job whose rank nobody knows a number that no rank has, in all that
    was seen of it, so that it is judged like the others.
    """
    unknown = {
        (fact.cell, fact.pid): number_of(fact.pid)
        for fact in facts
        if isinstance(fact, JobRank) and fact.rank is None and fact.pid
    }
    if not unknown:
        return facts

    def numbered(fact: Fact) -> Fact:
        number = unknown.get((fact.cell, getattr(fact, "pid", 0))) if fact.rank is None else None
        return fact if number is None else replace(fact, rank=number)

    return [numbered(fact) for fact in facts]


def _processes(data: Mapping[str, Any], name: str) -> tuple[Process, ...]:
    def process(row: Mapping[str, Any]) -> Process:
        numbers = {name: fields.whole(row, name) for name in ("rank", "ppid", "attempt")}
        return Process(
            _pid(row),
            fields.text(row, "role"),
            cmdline=fields.text(row, "cmdline"),
            age_s=fields.number(row, "age_s"),
            **numbers,
        )

    return tuple(fields.each(fields.items(data, name), process))


def _within(number: int | None, least: int) -> int | None:
    return number if number is not None and least <= number <= WORLD_CAP else None


def _pid(row: Mapping[str, Any]) -> int:
    pid = fields.whole(row, "pid")
    if pid is None:
        raise fields.UnreadableError("a process without a pid")
    return pid
