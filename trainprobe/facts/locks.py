"""File locks: who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class LockWait(Fact):
    """Process `pid` waits for a file lock that `holder_pid` holds (None where the kernel does not say). `path` may be empty."""

    pid: int = 0
    holder_pid: int | None = None
    path: str = ""
    kind: str = ""
    device: str = ""
    inode: int | None = None
