"""What /proc said of each process."""

from __future__ import annotations

from dataclasses import dataclass

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
