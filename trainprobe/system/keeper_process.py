"""The keeper: a small program that no process it has started can outlive.

It is run as `python -I -S -E keeper_process.py STATUS_FD BELL_FD` with the command pipe as standard input, and uses the standard
library only. It makes itself the child subreaper, so that whoever double-forks, calls setsid or loses its parent stays below it.
When the command pipe ends, however the tool went, it kills everything below it and goes.

Commands, one JSON object a line: `start` (key, argv, env, cwd, stdout, stderr, cap_bytes) and `stop` (grace_s, kill_s).
Status, one JSON object a line and one write a line, to STATUS_FD: ready, started, not_started, ended, seen, changed, gone, cut,
left, stopped, fault. After each a byte goes to BELL_FD, so that the tool can sleep until there is news.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import select
import signal
import stat
import struct
import sys
import time
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PIDFD_GET_INFO, PIDFD_INFO_EXIT = 0xC040FF0B, 1 << 3  # linux/pidfd.h; the exit status is kept there since 6.15
SCAN_S, KILL_AGAIN_S, IDLE_S = 0.05, 0.01, 1.0
LAST_KILL_S = 10.0  # how long we go on killing once the tool is gone
TAIL_BYTES, CMDLINE_BYTES = 2**20, 4096
SETTLING_S = 1.0  # a fork has its parent's command line until it calls exec: read it again for so long
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGPIPE)

libc = ctypes.CDLL(None, use_errno=True)


class Stat(NamedTuple):
    """Of /proc/PID/stat: fields 3, 4, 5, 20, 22 and 52."""

    state: str
    ppid: int
    group: int
    threads: int
    ticks: int
    status: int

    @property
    def dead(self) -> bool:
        """A zombie leader whose other threads go on is not dead yet."""
        return self.state in "ZX" and self.threads <= 1


class Process:
    """A process below us; `key` is set for those that we started. `sent` holds the signals that we sent to it."""

    def __init__(self, pid: int, stats: Optional[Stat], key: str = "") -> None:
        self.pid, self.key = pid, key
        self.ticks = stats.ticks if stats else 0
        self.seen = time.monotonic()
        self.read_again = [self.seen + SETTLING_S / 10, self.seen + SETTLING_S] if not key else []
        self.told: Tuple[str, Optional[int]] = ("", None)
        self.sent: Set[int] = set()
        self.pidfd = -1
        with contextlib.suppress(OSError, AttributeError):  # Linux before 5.3, or no descriptors left: we look at /proc instead
            self.pidfd = os.pidfd_open(pid)

    def send(self, number: int) -> None:
        """Send a signal to this very process, never to a later one with the same pid."""
        with contextlib.suppress(OSError):
            if self.pidfd >= 0:
                signal.pidfd_send_signal(self.pidfd, number)
            else:
                stats = read_stat(self.pid)
                if stats is None or stats.ticks != self.ticks:
                    return
                os.kill(self.pid, number)
            self.sent.add(number)


class Output:
    """A file that children write to: cut back to its head and newest tail whenever it passes its cap."""

    def __init__(self, path: str, cap_bytes: int) -> None:
        self.path, self.cap_bytes, self.cut_bytes, self.size = path, max(cap_bytes, 4096), 0, 0
        self.fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY, 0o600)
        found = os.fstat(self.fd)
        self.id = (found.st_dev, found.st_ino)
        self.regular = stat.S_ISREG(found.st_mode)

    def cut(self) -> int:
        """Return how many bytes were cut just now. O_APPEND lets the writers go on at the new end."""
        size = os.fstat(self.fd).st_size if self.regular else 0
        grown, self.size = size - self.size, size
        if size <= self.cap_bytes:
            return 0 if grown < self.cap_bytes // 8 else -1
        head, keep = self.cap_bytes // 4, min(self.cap_bytes // 4, TAIL_BYTES)
        tail = os.pread(self.fd, keep, size - keep)
        newest = os.fstat(self.fd).st_size
        while newest > size and newest - size <= keep:  # what came while we read
            tail, size = (tail + os.pread(self.fd, newest - size, size))[-keep:], newest
            newest = os.fstat(self.fd).st_size
        os.ftruncate(self.fd, head)
        cut = newest - head - len(tail)
        self.cut_bytes += cut
        with contextlib.suppress(OSError):  # on a full disk the head must do
            os.write(self.fd, b"\n[trainprobe: %d bytes cut here]\n" % cut + tail)
        self.size = os.fstat(self.fd).st_size
        return cut


def read_file(path: str, limit: int = 65536) -> bytes:
    """Return the first `limit` bytes, empty where it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, limit)
    except OSError:
        return b""
    finally:
        os.close(fd)


def read_stat(pid: int) -> Optional[Stat]:
    """Return None when there is no such process. The name may hold blanks and brackets, so the fields count from its end."""
    fields = read_file(f"/proc/{pid}/stat", 4096).rpartition(b")")[2].split()
    if len(fields) < 20:
        return None
    status = int(fields[49]) if len(fields) > 49 else -1
    return Stat(fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[17]), int(fields[19]), status)


def kept_status(pidfd: int) -> Optional[int]:
    """Ask a new kernel for the exit status of a process that its parent has reaped already."""
    info = bytearray(struct.pack("=QQ12I", PIDFD_INFO_EXIT, *([0] * 13)))
    with contextlib.suppress(OSError):
        fcntl.ioctl(pidfd, PIDFD_GET_INFO, info)
        if struct.unpack_from("=Q", info)[0] & PIDFD_INFO_EXIT:
            return int(struct.unpack_from("=i", info, 60)[0])
    return None


def read_cmdline(pid: int) -> Tuple[str, Optional[int], bool]:
    """Return the command line, RANK of the environment, and whether the environment could be read at all."""
    words = read_file(f"/proc/{pid}/cmdline", CMDLINE_BYTES).rstrip(b"\0").split(b"\0")
    environ = read_file(f"/proc/{pid}/environ", 2**20)
    rank = None
    for entry in environ.split(b"\0"):
        if entry.startswith(b"RANK=") and entry[5:].isdigit() and len(entry) < 16:
            rank = int(entry[5:])
    return b" ".join(words).decode("utf-8", "replace"), rank, bool(environ)


class Keeper:
    """One loop over the command pipe, the ends of processes, and the clock."""

    def __init__(self, status_fd: int, bell_fd: int) -> None:
        self.me, self.status_fd, self.bell_fd = os.getpid(), status_fd, bell_fd
        self.alive: Dict[int, Process] = {}
        self.foreign: Set[int] = set()
        self.over: Dict[int, int] = {}  # ended, but perhaps still listed as zombies
        self.outputs: Dict[Tuple[int, int], Output] = {}
        self.readers: Dict[Tuple[int, int], Set[str]] = {}
        self.starting: Dict[int, Tuple[Process, bytes]] = {}
        self.lifeline, self.unread = True, b""
        self.grace_until = self.kill_until = 0.0  # both 0 while nobody asked to stop
        self.killing = False
        self.last_pid, self.scans, self.next_scan, self.unjudged = b"", 0, 0.0, 0
        self.loadavg = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
        self.epoll = select.epoll()
        self.limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    def tell(self, event: str, **said: Any) -> None:
        """Append one status line with one write, and ring."""
        with contextlib.suppress(OSError):  # the bell is full when the tool is busy, and gone when the tool is
            os.write(self.status_fd, json.dumps({"event": event, "at": time.time(), **said}).encode() + b"\n")
            os.write(self.bell_fd, b".")

    def set_up(self) -> None:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        woken, wake = os.pipe()
        for fd in (0, woken, wake, self.bell_fd):
            os.set_blocking(fd, False)
        for fd in (0, self.status_fd, self.bell_fd):
            os.set_inheritable(fd, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with contextlib.suppress(OSError, ValueError):  # each process below us costs a descriptor; children get the old limit back
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.limits[1], self.limits[1]))
        self.woken = woken
        for fd in (0, woken):
            self.epoll.register(fd, select.EPOLLIN)
        self.tell("ready", pid=self.me)

    def serve(self) -> None:
        while self.lifeline or self.alive or self.starting:
            busy = self.look_at_outputs()
            ready = {fd for fd, _ in self.epoll.poll(self.pause_s(busy))}
            if self.woken in ready:
                with contextlib.suppress(OSError):
                    os.read(self.woken, 4096)
            for fd in ready & self.starting.keys():
                self.hear_from_start(fd)
            self.reap()
            self.look_for_ends(ready)
            if self.alive and time.monotonic() >= self.next_scan:
                self.scan()
            if 0 in ready:
                self.read_commands()
            if self.kill_until and self.keep_stopping() and not self.lifeline:
                return

    def pause_s(self, busy: bool) -> float:
        if self.killing or busy:
            return KILL_AGAIN_S
        return SCAN_S if self.alive or self.starting else IDLE_S

    # --- commands

    def read_commands(self) -> None:
        try:
            block = os.read(0, 2**16)
        except BlockingIOError:
            return
        if not block:
            self.epoll.unregister(0)
            self.lifeline = False
            self.stop(0.0, LAST_KILL_S)
            return
        *lines, self.unread = (self.unread + block).split(b"\n")
        for line in lines:
            command = json.loads(line)
            if command["do"] == "start":
                self.start(command)
            elif command["do"] == "stop":
                self.stop(command["grace_s"], command["kill_s"])

    def start(self, spec: Dict[str, Any]) -> None:
        key, files = spec["key"], []
        try:
            for path in (spec["stdout"], spec["stderr"]):
                output = Output(path, spec["cap_bytes"])
                known = self.outputs.setdefault(output.id, output)
                if known is not output:
                    os.close(output.fd)
                files.append(known)
                self.readers.setdefault(known.id, set()).add(key)
        except OSError as error:
            self.tell("not_started", key=key, reason=f"its output file {path} cannot be opened: {error.strerror}")
            return
        heard, told = os.pipe()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(heard)
            os.close(told)
            self.tell("not_started", key=key, reason=f"no process could be made for it: {error.strerror}")
            return
        if pid == 0:
            become(spec, files, told, self.me, self.limits)
        os.close(told)
        process = Process(pid, read_stat(pid), key)
        self.follow(process)
        self.starting[heard] = (process, b"")
        self.epoll.register(heard, select.EPOLLIN)

    def hear_from_start(self, fd: int) -> None:
        """The pipe closes at exec; words on it say why there was none."""
        process, words = self.starting[fd]
        block = os.read(fd, 4096)
        if block:
            self.starting[fd] = (process, words + block)
            return
        self.epoll.unregister(fd)
        os.close(fd)
        del self.starting[fd]
        if words:
            self.forget(process.pid)
            self.tell("not_started", key=process.key, reason=words.decode("utf-8", "replace"))
        else:
            self.tell("started", key=process.key, pid=process.pid, ticks=process.ticks)

    # --- who is there

    def follow(self, process: Process) -> None:
        self.alive[process.pid] = process
        if process.pidfd >= 0:
            self.epoll.register(process.pidfd, select.EPOLLIN)

    def scan(self, *, force: bool = False) -> None:
        """Find new processes below us. Each pid of the machine is judged once, as long as it is listed."""
        began = time.monotonic()
        last_pid = os.pread(self.loadavg, 256, 0).rpartition(b" ")[2]
        if last_pid != self.last_pid or self.unjudged or force:  # it changes with every new process and thread
            self.last_pid = last_pid
            self.scans += 1
            if self.scans % 64 == 0:
                self.foreign.clear()  # a pid may have been given away again between two scans
            listed = {int(name) for name in os.listdir("/proc") if name.isdigit()}
            self.foreign &= listed
            self.over = {pid: ticks for pid, ticks in self.over.items() if pid in listed}
            self.unjudged = 0
            judged: Dict[int, Optional[Stat]] = {}
            for pid in sorted(listed - self.foreign - self.alive.keys() - {self.me}):
                self.judge(pid, listed, judged)
        for process in list(self.alive.values()):
            if process.read_again and began >= process.read_again[0]:
                process.read_again.pop(0)
                self.describe(process, read_stat(process.pid))
        cost = time.monotonic() - began
        self.next_scan = began + min(max(SCAN_S, 20 * cost), 0.5)

    def judge(self, pid: int, listed: Set[int], judged: Dict[int, Optional[Stat]]) -> None:
        """Add `pid` to ours or to the foreign ones; its parents first where they are new as well."""
        line: List[int] = []
        while pid in listed and pid not in self.alive and pid not in self.foreign and pid != self.me and pid not in judged:
            judged[pid] = read_stat(pid)
            line.append(pid)
            stats = judged[pid]
            pid = stats.ppid if stats else -1
        for new in reversed(line):
            stats = judged[new]
            if stats is None or self.over.get(new) == stats.ticks or (stats.dead and stats.ppid == self.me):
                continue
            if stats.ppid in self.alive or stats.ppid == self.me:
                self.follow(Process(new, stats))
                self.describe(self.alive[new], stats)
            elif stats.ppid in self.foreign or stats.ppid in (0, 1):
                self.foreign.add(new)
            else:
                self.unjudged += 1  # its parent has just ended: the next scan sees a new one

    def describe(self, process: Process, stats: Optional[Stat]) -> None:
        if stats is None:
            return
        cmdline, rank, readable = read_cmdline(process.pid)
        if not readable:
            rank = process.told[1]
        if not process.told[0]:
            self.tell("seen", pid=process.pid, ppid=stats.ppid, ticks=process.ticks, cmdline=cmdline, rank=rank)
        elif cmdline and (cmdline, rank) != process.told:
            self.tell("changed", pid=process.pid, cmdline=cmdline, rank=rank)
        process.told = (cmdline or "?", rank)

    # --- who has ended

    def reap(self) -> None:
        """Collect our own children and the orphans that became ours."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self.end(pid, status, "wait")

    def look_for_ends(self, ready: Set[int]) -> None:
        """See the ends of those whose parent is another process, before or after it reaps them."""
        for process in list(self.alive.values()):
            if process.key or (process.pidfd >= 0 and process.pidfd not in ready):
                continue
            stats = read_stat(process.pid)
            if stats is not None and stats.ticks == process.ticks:
                if not stats.dead or stats.ppid == self.me:
                    continue
                self.end(process.pid, stats.status if stats.status >= 0 else None, "proc")
            else:
                status = kept_status(process.pidfd) if process.pidfd >= 0 else None
                self.end(process.pid, status, "nobody" if status is None else "proc")

    def forget(self, pid: int) -> Optional[Process]:
        process = self.alive.pop(pid, None)
        if process is not None:
            self.over[pid] = process.ticks
            if process.pidfd >= 0:
                self.epoll.unregister(process.pidfd)
                os.close(process.pidfd)
        return process

    def end(self, pid: int, status: Optional[int], seen_by: str) -> None:
        for fd in [fd for fd, (process, _) in self.starting.items() if process.pid == pid]:
            while fd in self.starting:  # it is dead, so this pipe has an end
                self.hear_from_start(fd)
        process = self.forget(pid)
        if process is None:
            return
        # After our SIGTERM whatever happens is our doing, but not a SIGKILL that we did not send.
        killed = status is not None and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        by_us = bool(process.sent) and (not killed or signal.SIGKILL in process.sent)
        took_s = time.monotonic() - process.seen
        self.look_at_outputs()
        self.tell("ended" if process.key else "gone", key=process.key, pid=pid, status=status, seen_by=seen_by, by_us=by_us, took_s=took_s)

    # --- output and stopping

    def look_at_outputs(self) -> bool:
        """Cut what is too long. Return True when something grows so fast that it should be looked at again soon."""
        busy = False
        for output in self.outputs.values():
            with contextlib.suppress(OSError):
                cut = output.cut()
                busy = busy or cut != 0
                if cut > 0:
                    for key in self.readers[output.id]:
                        self.tell("cut", key=key, path=output.path, cut_bytes=cut)
        return busy

    def stop(self, grace_s: float, kill_s: float) -> None:
        self.reap()
        self.scan(force=True)
        now = time.monotonic()
        self.grace_until, self.kill_until, self.killing = now + grace_s, now + grace_s + kill_s, grace_s <= 0
        for process in list(self.alive.values()):
            if not self.killing:
                process.send(signal.SIGTERM)
                stats = read_stat(process.pid)
                if stats is not None and stats.state in "Tt":
                    process.send(signal.SIGCONT)  # stopped, it could not obey
        self.keep_stopping()

    def keep_stopping(self) -> bool:
        """Return True when all are gone or the time is up."""
        now = time.monotonic()
        for _ in range(5):
            if not self.alive:
                self.scan(force=True)
            if not self.unjudged:
                break
        if self.alive and now < self.kill_until:
            self.killing = self.killing or now >= self.grace_until
            if self.killing:
                self.kill()
            return False
        for process in self.alive.values():
            stats = read_stat(process.pid)
            wchan = read_file(f"/proc/{process.pid}/wchan", 128).decode("ascii", "replace")
            self.tell("left", key=process.key, pid=process.pid, state=stats.state if stats else "?", wchan=wchan)
        self.killing, self.grace_until, self.kill_until = False, 0.0, 0.0
        self.tell("stopped", left=len(self.alive))
        return True

    def kill(self) -> None:
        """Kill by group as well as one by one: the kernel ends a group in one step, also one that forks as fast as it can."""
        self.scan(force=True)
        groups = set()
        for process in list(self.alive.values()):
            stats = read_stat(process.pid)
            if stats is not None and stats.ticks == process.ticks and not stats.dead:
                groups.add(stats.group)
            process.send(signal.SIGKILL)
        for group in groups - {os.getpgrp(), 0, 1}:
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGKILL)
        self.reap()


def become(spec: Dict[str, Any], files: List[Output], told: int, keeper: int, limits: Tuple[int, int]) -> None:
    """Turn this fork into the wanted program. Never returns; what goes wrong is written to `told`."""
    says = ""
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(127)
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals():
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(files[0].fd, 1)
        os.dup2(files[1].fd, 2)
        says = f"its working directory {spec['cwd']} cannot be entered"
        os.chdir(spec["cwd"])
        says = f"the program {spec['argv'][0]} cannot be run"
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])
    except BaseException as error:  # noqa: BLE001 - there is nobody above us who could hear it
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        os.write(told, f"{says}: {why}".encode("utf-8", "replace")[:4000])
    os._exit(127)


def main() -> int:
    keeper = Keeper(int(sys.argv[1]), int(sys.argv[2]))
    try:
        keeper.set_up()
        keeper.serve()
    except BaseException as error:  # noqa: BLE001 - whatever went wrong, nothing may stay behind
        keeper.tell("fault", reason=f"{type(error).__name__}: {error}", line=error.__traceback__.tb_lineno if error.__traceback__ else 0)
        until = time.monotonic() + LAST_KILL_S
        while time.monotonic() < until:
            keeper.kill()
            if not keeper.alive:
                break
            time.sleep(KILL_AGAIN_S)
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
