"""One look at the world: `Evidence`. And how a child process ended: `Ended`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Mapping, Optional, Tuple

from trainprobe.model.subjects import JOB, Subject

LookOutcome = Literal["ok", "partial", "unavailable", "denied", "timed_out", "crashed"]
EndedHow = Literal[
    "exited", "signalled", "oom_killed", "timed_out", "unkillable", "not_started", "not_run"
]


# Seconds, the year 5138: a damaged case may hold any number as a time, also infinity.
LAST_MOMENT = 1e11
LIVE_CELL = "job"  # of a job that was started elsewhere and is looked at while it runs


@dataclass(frozen=True)
class Evidence:
    """A look, also one that failed. Gathering writes it, concluding reads it, nobody changes it.

    `cell` names the launch that it belongs to (`user_script@4`: that rung on four ranks), empty for
    the whole case.
    `began` is Unix time in seconds. An outcome other than `ok` must carry a reason (ValueError
    otherwise).
    """

    id: str
    kind: str
    subject: Subject = JOB
    cell: str = ""
    source: str = ""
    began: float = 0.0
    took_s: float = 0.0
    outcome: LookOutcome = "ok"
    reason: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    files: Tuple[str, ...] = ()
    redacted: int = 0
    schema: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.outcome != "ok" and not self.reason:
            raise ValueError(
                f"evidence {self.id} ({self.kind}) has outcome {self.outcome} but no reason"
            )


@dataclass(frozen=True)
class Ended:
    """How a process ended; never a made-up return code.

    `code` is the exit status (exited), `signal` the number of the ending signal. `by_us` is true
    when we sent it.
    `phase` names the deadline that passed (timed_out). `at` is Unix time in seconds, None when it
    was not seen.
    `seen_by` says how the status is known: wait, proc (read off a zombie), launcher (printed by
    it), nobody.
    """

    how: EndedHow
    code: Optional[int] = None
    signal: Optional[int] = None
    by_us: bool = False
    phase: str = ""
    reason: str = ""
    at: Optional[float] = None
    took_s: float = 0.0
    seen_by: Literal["wait", "proc", "launcher", "nobody"] = "wait"
    extra: Mapping[str, Any] = field(default_factory=dict)
