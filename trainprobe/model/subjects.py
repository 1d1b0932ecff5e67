"""What a piece of evidence is about: a job, a host, a process, a rank or a GPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Mapping, Optional, Tuple

SubjectKind = Literal["job", "host", "process", "rank", "gpu"]


@dataclass(frozen=True)
class Subject:
    """The thing looked at.

    `pid` alone can be reused, so it goes with `started_ticks`: field 22 of /proc/PID/stat, in clock
    ticks since boot.
    `role` says what a process is to the job: rank, launcher, loader-worker, child.
    """

    kind: SubjectKind = "job"
    host: str = ""
    rank: Optional[int] = None
    pid: Optional[int] = None
    started_ticks: Optional[int] = None
    gpu: Optional[int] = None
    role: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


JOB = Subject("job")


@dataclass(frozen=True)
class Target:
    """Who the ranks are and how they are reached.

    `mode` is `launch` (we start the ranks ourselves), `command` (the user's launcher starts them).
    `interpreter` is the path of the Python that runs the probes and the script: the job's, not the
    tool's.
    """

    mode: Literal["launch", "command", "probes"]
    world_size: int
    interpreter: str
    subjects: Tuple[Subject, ...] = ()
    reach: str = "local"
    extra: Mapping[str, Any] = field(default_factory=dict)
