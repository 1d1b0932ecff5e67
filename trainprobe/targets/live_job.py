"""What a live job is: who launched it, who its ranks are, who else belongs to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from trainprobe.model.ranks import fold_ranks

CMDLINE_CAP = 4000


@dataclass(frozen=True)
class LaunchedBy:
    """`kind` is torchrun, accelerate, deepspeed, spawn, ray, mpirun, slurm, bare, single or
    data-parallel. `pid` is None where nobody is left.
    """

    kind: str = "single"
    pid: int | None = None
    started_ticks: int | None = None
    cmdline: str = ""


@dataclass(frozen=True)
class LiveRank:
    """One rank on this host. `rank` is None where no source is good enough; `rank_source` names the
    source of the number.

    `uid` is the effective user, `nspid` its pid in each nested namespace, `attempt` the elastic
    restart that it belongs to. `wait_status` says how it ended where it is a zombie, as wait(2)
    does; None while it lives or where that is hidden.
    """

    pid: int
    started_ticks: int
    rank: int | None = None
    rank_source: str = ""
    local_rank: int | None = None
    nspid: tuple[int, ...] = ()
    uid: int = -1
    attempt: int | None = None
    cmdline: str = ""
    wait_status: int | None = None


@dataclass(frozen=True)
class Companion:
    """A process beside the ranks: launcher, loader-worker, compiler or child of `rank`."""

    pid: int
    started_ticks: int
    role: str
    rank: int | None
    cmdline: str
    ppid: int
    rank_pid: int | None = None
    # False where the role of a worker is a guess: a rank that has not connected yet looks the same
    sure: bool = True


@dataclass(frozen=True)
class Former:
    """A survivor of an earlier attempt or another run; `age_s` is seconds since its start."""

    pid: int
    started_ticks: int
    cmdline: str
    attempt: int | None = None
    age_s: float | None = None


@dataclass(frozen=True)
class JobProcess:
    """A process to look at: the fields of a member of a cell."""

    rank: int | None
    pid: int
    role: str
    started_ticks: int
    attempt: int | None = None


@dataclass(frozen=True)
class LiveJob:
    """A whole job as far as this host shows it. `began` is Unix time in seconds, `age_s` seconds
    since the oldest rank started.

    `absent` are ranks of the world that are not here; `elsewhere` says that they may live on other
    hosts. `torch` says of a single process without a rank whether it, or a process below it, has
    libtorch in memory; None of others, and where that may not be read. `below` is
    the shell or other wrapper that was asked for, as `bash 4711`, and has only this job below it.
    `orphaned` are the pids of ranks that torchrun has started and that outlive it.
    """

    launcher: LaunchedBy
    ranks: tuple[LiveRank, ...]
    others: tuple[Companion, ...] = ()
    world_size: int | None = None
    world_size_source: str = ""
    host: str = ""
    script: str = ""
    cwd: str = ""
    python: str = ""
    began: float | None = None
    age_s: float | None = None
    attempt: int | None = None
    nnodes: int | None = None
    absent: tuple[int, ...] = ()
    elsewhere: bool = False
    earlier_attempts: tuple[Former, ...] = ()
    leftovers: tuple[Former, ...] = ()
    container: str = ""
    backend: str = ""
    device: str = ""
    torch: bool | None = None
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    below: str = ""
    orphaned: tuple[int, ...] = ()

    @property
    def line(self) -> str:
        """One line to choose a job by: pid, launcher, ranks, script, age."""
        ranks = [rank.rank for rank in self.ranks if rank.rank is not None]
        count = (
            f"ranks {fold_ranks(ranks)}"
            if len(ranks) > 1
            else f"{len(self.ranks)} rank{'s' if len(self.ranks) != 1 else ''}"
        )
        age = f", {_age(self.age_s)} old" if self.age_s is not None else ""
        return f"{self.pid}  {self.launcher.kind}, {count}, {self.script or 'no script'}{age}"

    @property
    def pid(self) -> int:
        """The pid that names the job: its launcher (not Ray's, which has many) or first rank."""
        if self.launcher.pid is not None and (self.launcher.kind != "ray" or not self.ranks):
            return self.launcher.pid
        return self.ranks[0].pid if self.ranks else 0

    def members(self) -> list[JobProcess]:
        """Return everybody to look at: ranks in order, then the launcher, workers and the rest."""
        ranks = [
            JobProcess(rank.rank, rank.pid, "rank", rank.started_ticks, rank.attempt)
            for rank in self.ranks
        ]
        return ranks + [
            JobProcess(other.rank, other.pid, other.role, other.started_ticks, self.attempt)
            for other in self.others
        ]

    def as_data(self) -> dict[str, Any]:
        """Return the data of the evidence record `job`."""
        ranks = [
            {**asdict(rank), "nspid": list(rank.nspid), "cmdline": rank.cmdline[:CMDLINE_CAP]}
            for rank in self.ranks
        ]
        for rank in ranks:
            del rank["wait_status"]  # the record `rank.ended` tells
        others = [
            {
                name: getattr(other, name)
                for name in ("pid", "started_ticks", "role", "rank", "cmdline", "ppid")
            }
            for other in self.others
        ]
        return {
            "cell": "job",
            "launcher": asdict(self.launcher),
            **({"below": self.below} if self.below else {}),
            **({"orphaned": list(self.orphaned)} if self.orphaned else {}),
            "world_size": self.world_size,
            "world_size_source": self.world_size_source,
            "host": self.host,
            "script": self.script,
            "cwd": self.cwd,
            "python": self.python,
            "began": self.began,
            "attempt": self.attempt,
            "nnodes": self.nnodes,
            "ranks": ranks,
            "absent": list(self.absent),
            "elsewhere": self.elsewhere,
            "others": others,
            "earlier_attempts": [asdict(former) for former in self.earlier_attempts],
            "leftovers": [asdict(leftover) for leftover in self.leftovers],
            "container": self.container,
            "backend": self.backend,
            "device": self.device,
            "torch": self.torch,
            "environment": {rank: dict(values) for rank, values in self.environment.items()},
        }


def _age(age_s: float) -> str:
    if age_s < 120:
        return f"{age_s:.0f} s"
    return f"{age_s / 60:.0f} min" if age_s < 7200 else f"{age_s / 3600:.0f} h"
