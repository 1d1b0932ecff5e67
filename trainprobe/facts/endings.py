"""How ranks, launchers and workers ended, and in which order."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class RankEnding(Fact):
    """How one process of a cell ended.

    `how` is that of `model.evidence.Ended`. `order` is the place of this rank among the ends of its cell, by `failed_at`
    (0 first; ends within 5 ms share a place; None for what is not a rank, has no time, or was stopped by us).
    `failed_at` is the earliest of its uncaught exception and its end, Unix seconds: a rank that raised may take seconds to leave.
    `by_us` is true where we sent the signal, `by_launcher` where the user's launcher stopped it because another rank had failed.
    `oom_rise` is by how much the cgroup's count of out-of-memory kills rose, None where that was not seen.
    """

    role: str = "rank"
    pid: int | None = None
    how: str = "not_run"
    code: int | None = None
    signal: int | None = None
    signal_name: str = ""
    by_us: bool = False
    by_launcher: bool = False
    at: float | None = None
    failed_at: float | None = None
    started_at: float | None = None
    took_s: float = 0.0
    seen_by: str = "wait"
    oom_rise: int | None = None
    order: int | None = None
    host: str = ""
    phase: str = ""
    reason: str = ""

    @property
    def abnormal(self) -> bool:
        """Ended otherwise than by exit code 0, and not because we or the launcher ended it."""
        return not (self.by_us or self.by_launcher) and self.how in ABNORMAL and not (self.how == "exited" and self.code in (0, None))


ABNORMAL = ("exited", "signalled", "oom_killed", "unkillable", "not_started")
