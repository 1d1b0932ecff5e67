"""What is started, and what became of it."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Tuple

from trainprobe.model.evidence import Ended


@dataclass(frozen=True)
class ChildSpec:
    """One program to start. `key` tells the children of a keeper apart; `env` is the whole
    environment, nothing is added.

    `stdout` and `stderr` are paths of files to append to, the same path for both if wanted. When
    such a file grows beyond `output_cap_bytes` only its first quarter and its newest output stay.
    While anybody below the keeper lives, the middle is a hole that takes no room, and reads as
    zeros; after that it is one line that says how much is gone.
    """

    key: str
    argv: Tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    stdout: str
    stderr: str
    rank: Optional[int] = None
    output_cap_bytes: int = 32 * 2**20


@dataclass
class Child:
    """A program of ours. `started_at` is Unix time; `cut_bytes` is what its output lost."""

    spec: ChildSpec
    pid: Optional[int] = None
    started_at: Optional[float] = None
    started_ticks: Optional[int] = None
    ended: Optional[Ended] = None
    cut_bytes: int = 0


@dataclass(frozen=True)
class Descendant:
    """A process that a child of ours started, directly or not. `rank` is RANK of its environment,
    where that could be read.

    `seen_at` is Unix time in seconds; a process that lives for less than some 50 ms may never be
    seen.
    """

    pid: int
    ppid: int
    started_ticks: int
    cmdline: str
    rank: Optional[int] = None
    ended: Optional[Ended] = None
    seen_at: float = 0.0


def ended_from_status(status: int, **known: Any) -> Ended:
    """Turn a wait status (also field 52 of /proc/PID/stat) into an `Ended`."""
    number = status & 0x7F
    if number:
        return Ended("signalled", signal=number, **known)
    return Ended("exited", code=(status >> 8) & 0xFF, **known)


def signal_name(number: int) -> str:
    """Return SIGKILL for 9, and `signal 99` for what has no name here."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
