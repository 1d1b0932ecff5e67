"""The limits of the job's cgroup and what was used of them."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class MemoryLimit(Fact):
    """The cgroup over one cell: the last look, with the highest peak and the sum of what was seen.

    `limit_bytes` None means no limit. `oom_kill_rise` is how many processes the kernel killed during the cell, None if not seen.
    """

    version: int = 0
    path: str = ""
    limit_bytes: int | None = None
    current_bytes: int | None = None
    peak_bytes: int | None = None
    oom_kill: int | None = None
    oom_kill_rise: int | None = None
    pids_max: int | None = None
    cpu_quota: float | None = None
