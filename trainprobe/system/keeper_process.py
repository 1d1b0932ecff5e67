"""The keeper: a small program that no process it has started can outlive.

It is run as `python -I -S -E keeper_process.py STATUS_FD BELL_FD FOLDER` with the command pipe as
standard input, and uses the standard library only. It makes itself the child subreaper, so that
whoever double-forks, calls setsid or loses its parent stays below it. When the command pipe ends,
however the tool went, it kills everything below it and goes; where the tool went without a word,
it takes the tool's working folder along (FOLDER, empty for none).

Commands, one JSON object a line: `start` (key, argv, env, cwd, stdout, stderr, cap_bytes), `stop`
(grace_s, kill_s) and `leave` (the tool removes its working folder itself). Status, one JSON object
a line and one write a line, to STATUS_FD: ready, started, not_started, ended, seen, changed, gone,
cut, left, stopped, fault. With each a byte goes to BELL_FD, so that the tool can sleep until there
is news.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any, Dict, List, Optional, Set, Tuple

if (
    __name__ == "__main__"
):  # -I leaves our own folder out; at the end of the path it can shadow nothing
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from trainprobe.system.family import SCAN_S, Family, Process
from trainprobe.system.output_file import OutputFile
from trainprobe.system.proc import read_file, read_stat

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SOON_S, IDLE_S = 0.01, 1.0
LAST_KILL_S = 10.0  # how long it goes on killing once the tool is gone
LAST_SWEEP_S = 5.0  # how long it waits until the tool, whose pipe has ended, has gone
IGNORED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGPIPE,
)

libc = ctypes.CDLL(None, use_errno=True)


class Keeper:
    """One loop over the command pipe, the ends of processes, the output files and the clock."""

    def __init__(self, status_fd: int, bell_fd: int) -> None:
        self.status_fd, self.bell_fd = status_fd, bell_fd
        self.epoll = select.epoll()
        self.family = Family(self.tell, self.epoll)
        self.outputs: Dict[Tuple[int, int], OutputFile] = {}
        self.writers: Dict[Tuple[int, int], Set[str]] = {}
        self.starting: Dict[int, Tuple[Process, bytes]] = {}  # by the pipe that its exec closes
        self.lifeline, self.unread = True, b""
        self.tool_sweeps = False
        self.grace_until = 0.0
        self.kill_until: Optional[float] = None  # None while nobody has asked to stop
        self.open_files = resource.getrlimit(resource.RLIMIT_NOFILE)

    def tell(self, event: str, **fields: Any) -> None:
        """Append one status line with one write, and ring; the bell may be full, or gone."""
        with contextlib.suppress(OSError):
            os.write(
                self.status_fd,
                json.dumps({"event": event, "at": time.time(), **fields}).encode() + b"\n",
            )
            os.write(self.bell_fd, b".")

    def set_up(self) -> None:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        self.woken, wake = os.pipe()
        for fd in (0, self.bell_fd, self.woken, wake):
            os.set_blocking(fd, False)
        for fd in (0, self.status_fd, self.bell_fd):
            os.set_inheritable(fd, False)  # noqa: FBT003 - it takes no names
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with contextlib.suppress(
            OSError, ValueError
        ):  # each process below costs us a descriptor; children get the old limit back
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.open_files[1], self.open_files[1]))
        for fd in (0, self.woken):
            self.epoll.register(fd, select.EPOLLIN)
        self.tell("ready", pid=os.getpid())

    def serve(self) -> None:
        """Return when the tool is gone and nothing is left below, or only the unkillable."""
        while self.lifeline or self.kill_until is not None:
            soon = self.look_at_outputs() or self.killing()
            pause_s = SOON_S if soon else SCAN_S if self.family.alive else IDLE_S
            ready = {fd for fd, _ in self.epoll.poll(pause_s)}
            if self.woken in ready:
                with contextlib.suppress(OSError):
                    os.read(self.woken, 4096)
            for fd in ready & self.starting.keys():
                self.hear_from_start(fd)
            self.reap()
            self.family.look_for_ends(ready)
            if self.family.alive:
                self.family.scan_if_due()
            if 0 in ready:
                self.read_commands()
            self.go_on_stopping()

    # --- commands

    def read_commands(self) -> None:
        block = os.read(0, 2**16)
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
            elif command["do"] == "leave":
                self.tool_sweeps = True

    def start(self, spec: Dict[str, Any]) -> None:
        key, files = spec["key"], []
        for path in (spec["stdout"], spec["stderr"]):
            try:
                files.append(self.open_output(path, spec["cap_bytes"], key))
            except OSError as error:
                self.tell(
                    "not_started",
                    key=key,
                    reason=f"its output file {path} cannot be opened: {error.strerror}",
                )
                return
        try:
            heard, told = os.pipe()
        except OSError as error:
            self.tell(
                "not_started", key=key, reason=f"no pipe could be made for it: {error.strerror}"
            )
            return
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(heard)
            self.tell(
                "not_started", key=key, reason=f"no process could be made for it: {error.strerror}"
            )
            return
        else:
            if pid == 0:
                become(spec, files, told, parent, self.open_files)
        finally:
            os.close(told)
        process = Process(pid, read_stat(pid), key)
        self.family.follow(process)
        self.starting[heard] = (process, b"")
        self.epoll.register(heard, select.EPOLLIN)

    def open_output(self, path: str, cap_bytes: int, key: str) -> int:
        opened = OutputFile(path, cap_bytes)
        known = self.outputs.setdefault(opened.id, opened)
        if known is not opened:  # two streams, or two children, into one file
            os.close(opened.fd)
        self.writers.setdefault(known.id, set()).add(key)
        return known.fd

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
            self.family.forget(process.pid)
            self.tell("not_started", key=process.key, reason=words.decode("utf-8", "replace"))
        else:
            self.tell("started", key=process.key, pid=process.pid, ticks=process.started_ticks)

    # --- ends and output

    def reap(self) -> None:
        """Collect our own children, and the orphans that became ours."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                for fd in [fd for fd, (process, _) in self.starting.items() if process.pid == pid]:
                    while fd in self.starting:  # it is dead, so this pipe has an end
                        self.hear_from_start(fd)
                if self.family.alive.keys() <= {
                    pid
                }:  # somebody unseen may have been below it, who is our child from now on
                    self.family.scan(force=True)
                self.look_at_outputs(settle=self.family.alive.keys() <= {pid})
                self.family.end(pid, status, "wait")

    def look_at_outputs(self, *, settle: bool = False) -> bool:
        """Cut what is too long. Return True when the next look should be soon."""
        soon = False
        for output in self.outputs.values():
            with contextlib.suppress(OSError):
                cut_bytes, grows = output.look()
                cut_bytes += output.settle() if settle else 0
                soon = soon or grows
                if cut_bytes:
                    for key in self.writers[output.id]:
                        self.tell("cut", key=key, path=output.path, cut_bytes=cut_bytes)
        return soon

    # --- stopping

    def killing(self) -> bool:
        return self.kill_until is not None and time.monotonic() >= self.grace_until

    def stop(self, grace_s: float, kill_s: float) -> None:
        self.reap()
        self.family.scan(force=True)
        now = time.monotonic()
        self.grace_until, self.kill_until = now + grace_s, now + grace_s + kill_s
        if grace_s > 0:
            for process in list(self.family.alive.values()):
                process.send(signal.SIGTERM)
                stats = process.stat()
                if stats is not None and stats.state in "Tt":
                    process.send(signal.SIGCONT)  # stopped, it could not obey

    def go_on_stopping(self) -> None:
        if self.kill_until is None:
            return
        if self.killing():
            self.family.kill()
            self.reap()
        if not self.family.empty():
            if time.monotonic() < self.kill_until:
                return
            self.tell_left()
        self.kill_until = None
        self.tell("stopped")

    def tell_left(self) -> None:
        for process in self.family.alive.values():
            stats = process.stat()
            if stats is not None and not stats.dead:
                wchan = read_file(f"/proc/{process.pid}/wchan", 128).decode("ascii", "replace")
                self.tell("left", key=process.key, pid=process.pid, state=stats.state, wchan=wchan)


def become(
    spec: Dict[str, Any], files: List[int], told: int, parent: int, open_files: Tuple[int, int]
) -> None:
    """Turn this fork into the program. Never returns; errors are written to `told`."""
    says = "it could not be prepared"
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(127)  # the keeper went before we asked to go with it
        os.setsid()
        signal.set_wakeup_fd(-1)
        for each in signal.valid_signals():
            with contextlib.suppress(OSError, ValueError):
                signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        resource.setrlimit(resource.RLIMIT_NOFILE, open_files)
        for fd, number in zip((os.open(os.devnull, os.O_RDONLY), *files), range(3)):
            os.dup2(fd, number)
        says = f"its working directory {spec['cwd']} cannot be entered"
        os.chdir(spec["cwd"])
        says = f"the program {spec['argv'][0]} cannot be run"
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])  # noqa: S606 - it is what we are for
    except BaseException as error:  # noqa: BLE001 - there is nobody above us who could hear it
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        os.write(told, f"{says}: {why}".encode("utf-8", "replace")[:4000])
    os._exit(127)


def main() -> None:
    keeper = Keeper(int(sys.argv[1]), int(sys.argv[2]))
    try:
        keeper.set_up()
        keeper.serve()
        if sys.argv[3] and not keeper.tool_sweeps:
            from trainprobe.system.working_folders import remove_abandoned

            remove_abandoned(sys.argv[3], LAST_SWEEP_S)
    except BaseException as error:
        line = error.__traceback__.tb_lineno if error.__traceback__ else 0
        keeper.tell("fault", reason=f"{type(error).__name__}: {error}", line=line)
        until = time.monotonic() + LAST_KILL_S
        while (
            not keeper.family.empty() and time.monotonic() < until
        ):  # whatever went wrong with us, nothing may stay behind
            keeper.family.kill()
            keeper.reap()
            time.sleep(SOON_S)
        raise


if __name__ == "__main__":
    main()
