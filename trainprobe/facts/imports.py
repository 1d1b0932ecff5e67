"""How each import fared, alone and together with the other ranks."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame


@dataclass(frozen=True)
class ImportTried(Fact):
    """`how` is alone (a fresh process) or together (all ranks at once). `outcome` is passed, failed, timed_out, crashed, oom_killed or not_measured.

    `frames` are where it stood or failed, outermost first.
    """

    module: str = ""
    how: str = "alone"
    outcome: str = "not_measured"
    took_s: float | None = None
    rss_bytes: int | None = None
    threads: int | None = None
    fds: int | None = None
    touched_cuda: bool | None = None
    error_type: str = ""
    error: str = ""
    frames: tuple[Frame, ...] = ()
