"""Who is looked at: the processes of a running cell."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Optional

from trainprobe.model.subjects import Subject, SubjectKind


@dataclass(frozen=True)
class Member:
    """A process of the job. `role` is rank, launcher, loader-worker or child; for the last two
    `rank` is the rank that they serve.

    `started_ticks` (field 22 of /proc/PID/stat) tells a reused pid from the one that is meant; None
    when it is not known.
    """

    rank: Optional[int]
    pid: int
    role: str = "rank"
    started_ticks: Optional[int] = None

    @property
    def subject(self) -> Subject:
        kind: SubjectKind = "rank" if self.role == "rank" and self.rank is not None else "process"
        return Subject(
            kind,
            host=host_name(),
            rank=self.rank,
            pid=self.pid,
            started_ticks=self.started_ticks,
            role=self.role,
        )


def host_name() -> str:
    return os.uname().nodename


def host_subject() -> Subject:
    return Subject("host", host=host_name())
