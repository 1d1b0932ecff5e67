"""What the kernel log says about kills, crashes and GPUs since the cell began."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class OomKill(Fact):
    """The kernel killed process `pid` for lack of memory. `in_cgroup` is true when a cgroup's limit was the reason."""

    pid: int = 0
    name: str = ""
    rss_bytes: int | None = None
    in_cgroup: bool = False
    at: float | None = None


@dataclass(frozen=True)
class Segfault(Fact):
    """A crash of process `pid` in `library` (empty where the kernel did not name one)."""

    pid: int = 0
    name: str = ""
    library: str = ""
    text: str = ""
    at: float | None = None


@dataclass(frozen=True)
class Xid(Fact):
    """An NVIDIA driver error by its number."""

    code: int = 0
    text: str = ""
    device: str = ""
    at: float | None = None
