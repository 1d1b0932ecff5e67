"""How ranks, launchers and workers ended, and in which order."""

from __future__ import annotations

import typing
from dataclasses import dataclass

from trainprobe.model import fields
from trainprobe.model.evidence import EndedHow, Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class RankEnding(Fact):
    """How one process of a cell ended.

    `how` is that of `model.evidence.Ended`. `order` is the place of this rank among the ends of its
    cell, by `failed_at` (0 first; ends within 5 ms share a place; None for what is not a rank, has
    no time, or was stopped by us).
    `failed_at` is the earliest of its uncaught exception and its end, Unix seconds: a rank that
    raised may take seconds to leave.
    `by_us` is true where we sent the signal, `by_launcher` where the user's launcher stopped it
    because another rank had failed.
    `left_by_itself` is true when the witness saw it come to its normal end: one that was signalled
    on its way out then counts as exited, with the status that it asked for. `echo` is true when its
    own exception or death only repeats another rank's.
    `place` orders what was read in logs afterwards, `seen_at` is the file and line there.
    `oom_rise` is by how much the cgroup's count of out-of-memory kills rose, None where that was
    not seen.
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
    echo: bool = False
    left_by_itself: bool = False
    place: int | None = None
    seen_at: str = ""

    @property
    def abnormal(self) -> bool:
        """Ended otherwise than by exit code 0, and not because we or the launcher ended it."""
        return (
            not (self.by_us or self.by_launcher)
            and self.how in ABNORMAL
            and not (self.how == "exited" and self.code in (0, None))
        )


ABNORMAL = ("exited", "signalled", "oom_killed", "unkillable", "not_started")


def parse_ending(record: Evidence) -> list[Fact]:
    """Data: model.evidence.Ended as JSON, with started_at and cgroup_oom_rise beside it."""
    data = record.data
    how = fields.text(data, "how")
    if how not in typing.get_args(EndedHow):
        raise fields.UnreadableError(f"{how[:40]!r} is no way to end")
    number = fields.whole(data, "signal")
    at = fields.number(data, "at")
    return [
        RankEnding(
            evidence=(record.id,),
            cell=record.cell,
            rank=record.subject.rank,
            role=record.subject.role or "rank",
            pid=record.subject.pid,
            how=how,
            code=fields.whole(data, "code"),
            signal=number,
            signal_name=signal_name(number),
            by_us=fields.flag(data, "by_us") or False,
            at=at,
            failed_at=at,
            started_at=fields.number(data, "started_at"),
            took_s=fields.number(data, "took_s") or 0.0,
            seen_by=fields.text(data, "seen_by") or "wait",
            oom_rise=fields.whole(data, "cgroup_oom_rise"),
            host=record.subject.host,
            phase=fields.text(data, "phase"),
            reason=fields.text(data, "reason"),
        )
    ]


# signal(7) on x86 and ARM; the module `signal` would answer for the machine that concludes, not for
# the one that gathered.
SIGNALS = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
]


def signal_name(number: int | None) -> str:
    if number is None or number < 1:
        return ""
    return SIGNALS[number - 1] if number <= len(SIGNALS) else f"signal {number}"
