"""Kill a process with all that it started, by parent and session, without a keeper."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Dict, Iterable, Set

from trainprobe.system.proc import Stat, listed_pids, read_stat

ROUNDS = 50


def below(roots: Iterable[int]) -> Set[int]:
    """Return the living processes in sessions that `roots` lead and below them, without `roots`."""
    started = set(roots)
    seen: Dict[int, Stat] = {}
    for pid in listed_pids() - {os.getpid()}:
        stats = read_stat(pid)
        if stats is not None:
            seen[pid] = stats
    found = {pid for pid, stats in seen.items() if stats.session in started} | started
    while True:
        more = {pid for pid, stats in seen.items() if stats.ppid in found} - found
        if not more:
            return {pid for pid in found - started if pid in seen and not seen[pid].dead}
        found |= more


def kill_below(roots: Iterable[int]) -> None:
    """SIGKILL `roots` and everything below them, again until nothing new shows up.

    The caller makes sure that `roots` are what they were: not yet reaped, or of the right start
    time.
    """
    roots = set(roots)
    for _ in range(ROUNDS):
        found = below(
            roots
        )  # looked up before the kill: afterwards the orphans have another parent
        for pid in roots:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        for pid in found | roots:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return
        roots |= found
