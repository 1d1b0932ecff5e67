"""Everything below this process, by scans and descriptors. Standard library only."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import Callable, Dict, List, Optional, Set, Tuple

from trainprobe.system.proc import (
    Stat,
    kept_status,
    listed_pids,
    read_cmdline,
    read_file,
    read_stat,
)

SCAN_S, SLOWEST_SCAN_S = 0.05, 0.5
SETTLING_S = (
    1.0  # a fork has its parent's command line until it calls exec: read it again for so long
)
FORGET_FOREIGN_SCANS = 64
ORPHAN_ROUNDS = 20
MOST_DESCRIBED = 4000  # beyond that a fork bomb is at work, and what matters is to be quick


class Process:
    """A process below us; `key` is set for our own children, `sent` holds our signals."""

    def __init__(self, pid: int, stats: Optional[Stat], key: str = "") -> None:
        self.pid, self.key = pid, key
        self.started_ticks = stats.started_ticks if stats else 0
        self.seen = time.monotonic()
        self.read_again = [] if key else [self.seen + SETTLING_S / 10, self.seen + SETTLING_S]
        self.told: Tuple[str, Optional[int]] = ("", None)
        self.sent: Set[int] = set()
        self.pidfd = -1
        with contextlib.suppress(
            OSError, AttributeError
        ):  # Linux before 5.3, or no descriptors left: /proc must do
            self.pidfd = os.pidfd_open(pid)

    def stat(self) -> Optional[Stat]:
        """Return its state, None when it is gone, also when its pid belongs to another by now."""
        stats = read_stat(self.pid)
        return stats if stats is not None and stats.started_ticks == self.started_ticks else None

    def send(self, number: int) -> None:
        """Send a signal to this very process, if it lives."""
        stats = self.stat()
        if stats is None or stats.dead:
            return
        with contextlib.suppress(OSError):
            if self.pidfd >= 0:
                signal.pidfd_send_signal(self.pidfd, number)
            else:
                os.kill(self.pid, number)
            self.sent.add(number)


class Family:
    """Who is alive below us. `tell` hears who comes (seen, changed) and ends (ended, gone)."""

    def __init__(self, tell: Callable[..., None], epoll: select.epoll) -> None:
        self.me, self.tell, self.epoll = os.getpid(), tell, epoll
        self.alive: Dict[int, Process] = {}
        self.foreign: Set[int] = set()
        self.over: Dict[int, int] = {}  # ended, but perhaps still listed as zombies: pid and start
        self.loadavg = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
        self.last_pid, self.scans, self.next_scan, self.unjudged = b"", 0, 0.0, 0
        self.described = 0

    def follow(self, process: Process) -> None:
        self.alive[process.pid] = process
        if process.pidfd >= 0:
            self.epoll.register(process.pidfd, select.EPOLLIN)

    def forget(self, pid: int) -> Optional[Process]:
        process = self.alive.pop(pid, None)
        if process is not None:
            self.over[pid] = process.started_ticks
            if process.pidfd >= 0:
                self.epoll.unregister(process.pidfd)
                os.close(process.pidfd)
        return process

    def scan_if_due(self) -> None:
        """Scan at most every 50 ms, and for no more than a twentieth of the time."""
        began = time.monotonic()
        if began < self.next_scan:
            return
        self.scan()
        for process in list(self.alive.values()):
            if process.read_again and began >= process.read_again[0]:
                process.read_again.pop(0)
                self._describe(process, process.stat())
        self.next_scan = began + min(max(SCAN_S, 20 * (time.monotonic() - began)), SLOWEST_SCAN_S)

    def scan(self, *, force: bool = False) -> None:
        """Find new processes below us, judging each pid of the machine once."""
        last_pid = os.pread(self.loadavg, 256, 0).rpartition(b" ")[2]
        if last_pid == self.last_pid and not self.unjudged and not force:
            return  # the kernel has given no new pid since
        self.last_pid, self.unjudged = last_pid, 0
        self.scans += 1
        if self.scans % FORGET_FOREIGN_SCANS == 0:
            # a pid may have passed from one process to another between two scans
            self.foreign.clear()
        listed = listed_pids()
        self.foreign &= listed
        self.over = {pid: ticks for pid, ticks in self.over.items() if pid in listed}
        judged: Dict[int, Optional[Stat]] = {}
        for pid in sorted(listed - self.foreign - self.alive.keys() - {self.me}):
            self._judge(pid, judged)

    def _judge(self, pid: int, judged: Dict[int, Optional[Stat]]) -> None:
        """Count `pid`, after its parents, among ours or the foreign ones."""
        line: List[Tuple[int, Stat]] = []
        while (
            pid > 1
            and pid != self.me
            and pid not in self.alive
            and pid not in self.foreign
            and pid not in judged
        ):
            stats = judged[pid] = read_stat(pid)
            if stats is None:
                break
            line.append((pid, stats))
            pid = stats.ppid
        for new, stats in reversed(line):
            mine = stats.ppid == self.me
            if self.over.get(new) == stats.started_ticks or (
                mine and stats.dead
            ):  # dead ones of our own are for waitpid
                continue
            if mine or stats.ppid in self.alive:
                process = Process(new, stats)
                self.follow(process)
                self._describe(process, stats)
            elif stats.ppid in self.foreign or stats.ppid <= 1:
                self.foreign.add(new)
            else:
                self.unjudged += 1  # its parent has just ended: the next scan sees its new one

    def _describe(self, process: Process, stats: Optional[Stat]) -> None:
        if stats is None or (stats.dead and process.told[0]) or self.described > MOST_DESCRIBED:
            return
        self.described += not process.told[0]
        cmdline, rank, readable = read_cmdline(process.pid)
        if not readable:  # cleared, as setproctitle does: what was known stays
            rank = process.told[1]
        if not process.told[0]:
            self.tell(
                "seen",
                pid=process.pid,
                ppid=stats.ppid,
                ticks=process.started_ticks,
                cmdline=cmdline,
                rank=rank,
            )
        elif (cmdline, rank) != process.told:
            self.tell("changed", pid=process.pid, cmdline=cmdline, rank=rank)
        process.told = (cmdline, rank)

    def look_for_ends(self, ready: Set[int]) -> None:
        """See the ends of those whose parent is another process, before or after it reaps them.

        `ready` holds the descriptors that epoll named; who has no descriptor is looked up in /proc.
        """
        for process in list(self.alive.values()):
            if process.key or (process.pidfd >= 0 and process.pidfd not in ready):
                continue  # one that we started ends by waitpid alone
            stats = process.stat()
            if stats is not None:
                if stats.dead and stats.ppid != self.me:
                    self.end(process.pid, stats.status, "proc")
            else:
                status = kept_status(process.pidfd) if process.pidfd >= 0 else None
                self.end(process.pid, status, "nobody" if status is None else "proc")

    def end(self, pid: int, status: Optional[int], seen_by: str) -> None:
        """Tell how `pid` ended; `status` is a wait status, None where nobody saw it."""
        process = self.forget(pid)
        if process is None:
            return
        # After our SIGTERM whatever happens is our doing, but not a SIGKILL that we did not send.
        killed = (
            status is not None and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        )
        by_us = bool(process.sent) and (not killed or signal.SIGKILL in process.sent)
        event = "ended" if process.key else "gone"
        took_s = time.monotonic() - process.seen
        self.tell(
            event,
            key=process.key,
            pid=pid,
            status=status,
            seen_by=seen_by,
            by_us=by_us,
            took_s=took_s,
        )

    def kill(self) -> None:
        """Kill those we know before we look for more, so that nobody has the time to fork."""
        known = set(self.alive)
        self._kill_groups(known)
        self._kill_orphans()
        self.scan(force=True)
        self._kill_groups(self.alive.keys() - known)

    def _kill_groups(self, pids: Set[int]) -> None:
        """Kill whole groups too: the kernel ends a group in one step, forks included."""
        groups = set()
        living = []
        for pid in pids:
            process = self.alive[pid]
            stats = process.stat()
            if stats is not None and not stats.dead:
                living.append(process)
                groups.add(stats.group)
        for process in living:  # first: the signal to its group may end it before its own comes
            process.sent.add(signal.SIGKILL)
        for group in groups - {os.getpgrp(), 0, 1}:
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGKILL)
        for process in living:
            process.send(signal.SIGKILL)

    def _kill_orphans(self) -> None:
        """Kill new children of ours; this outruns one that forks and calls setsid forever."""
        killed: Set[int] = set()
        for _ in range(ORPHAN_ROUNDS):
            orphans = {
                int(pid)
                for pid in read_file(f"/proc/{self.me}/task/{self.me}/children", 2**20).split()
            }
            for pid in orphans - killed - self.alive.keys():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)  # ours and not reaped: the pid is still its own
            if orphans <= killed:
                break
            killed |= orphans

    def empty(self) -> bool:
        """Look again until it is certain that nobody is left."""
        for _ in range(5):
            if self.alive:
                return False
            self.scan(force=True)
            if not self.unjudged:
                break
        return not self.alive
