"""Run one short look-up, such as py-spy, and bring back what it said: bounded in time and size, and never through a shell."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import Dict, IO, List, Mapping, Optional, Sequence, Set, Tuple

from trainprobe.model.evidence import Ended
from trainprobe.system.child import ended_from_status

PR_SET_PDEATHSIG = 1
LOOK_AGAIN_S = 0.05
KILL_S = 2.0  # how long a killed program may take to go before it counts as unkillable

_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class Ran:
    """What came of it. `stdout` and `stderr` hold at most the cap each; `cut` is true when there was more."""

    argv: Tuple[str, ...]
    ended: Ended
    stdout: bytes
    stderr: bytes
    cut: bool


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Optional[Mapping[str, str]] = None,
    cwd: Optional[str] = None,
    output_cap_bytes: int = 8 * 2**20,
    input: Optional[bytes] = None,  # noqa: A002 - as in subprocess.run
) -> Ran:
    """Run `argv` in a session of its own and return when it has ended or `timeout_s` has passed.

    At the deadline its group and everything below it is killed (`ended.how` is timed_out). What it leaves in its group
    after a good end is killed as well. Nothing is raised for a program that is missing or fails.
    """
    argv = tuple(argv)
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile("ab+") as stdout, tempfile.TemporaryFile("ab+") as stderr:
        stdin.write(input or b"")
        stdin.seek(0)
        began = time.monotonic()
        try:
            process = subprocess.Popen(  # noqa: PLW1509 - _die_with_us does nothing but one system call
                argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=cwd, start_new_session=True, preexec_fn=_die_with_us
            )
        except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            reason = f"{argv[0] if argv else 'nothing'} cannot be run: {why}"
            return Ran(argv, Ended("not_started", reason=reason, at=time.time()), b"", b"", cut=False)
        cut = [False]
        try:
            in_time = _wait(process.pid, began + timeout_s, (stdout, stderr), output_cap_bytes, cut)
        finally:
            below = _kill(process.pid)
        gone = _wait(process.pid, time.monotonic() + KILL_S, (stdout, stderr), output_cap_bytes, cut)
        took_s = time.monotonic() - began
        known = {"at": time.time(), "took_s": took_s}
        if not gone:
            ended = Ended("unkillable", reason=f"SIGKILL did not end it within {KILL_S:g} s", by_us=True, **known)
        else:
            status = _reap(process)
            ended = ended_from_status(status, **known)
            if not in_time:
                ended = Ended("timed_out", signal=ended.signal, by_us=True, phase="run", reason=f"it gave no answer within {timeout_s:g} s", **known)
        del below
        return Ran(argv, ended, _read(stdout, output_cap_bytes), _read(stderr, output_cap_bytes), cut=cut[0])


def _die_with_us() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _reap(process: subprocess.Popen[bytes]) -> int:
    code = process.wait()
    return -code if code < 0 else code << 8


def _wait(pid: int, until: float, outputs: Sequence[IO[bytes]], cap_bytes: int, cut: List[bool]) -> bool:
    """Wait without reaping, so that the pid stays this process's own. Return False when the time is up."""
    waiting = select.poll()
    pidfd = -1
    with contextlib.suppress(OSError, AttributeError):  # Linux before 5.3: look every now and then
        pidfd = os.pidfd_open(pid)
        waiting.register(pidfd, select.POLLIN)
    try:
        while True:
            for output in outputs:
                if os.fstat(output.fileno()).st_size > cap_bytes:
                    os.ftruncate(output.fileno(), cap_bytes)
                    cut[0] = True
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return True
            left_s = until - time.monotonic()
            if left_s <= 0:
                return False
            waiting.poll(min(LOOK_AGAIN_S, left_s) * 1000)
    finally:
        if pidfd >= 0:
            os.close(pidfd)


def _kill(pid: int) -> Set[int]:
    """Kill the group of `pid` and everything below it, also what left the group."""
    killed: Set[int] = set()
    for _ in range(20):
        below = _below(pid) - killed
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        for each in below:
            with contextlib.suppress(OSError):
                os.kill(each, signal.SIGKILL)
        if not below:
            break
        killed |= below
    return killed


def _below(pid: int) -> Set[int]:
    """Return the pids below `pid`, and those in its session that have lost their parent."""
    parents: Dict[int, int] = {}
    found: Set[int] = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
            parents[int(name)] = int(fields[1])
            if int(fields[3]) == pid and int(name) != pid and fields[0] not in b"ZX":
                found.add(int(name))
    line = [pid, *found]
    while line:
        parent = line.pop()
        new = {each for each, its_parent in parents.items() if its_parent == parent} - found - {pid}
        found |= new
        line.extend(new)
    return found


def _read(output: IO[bytes], cap_bytes: int) -> bytes:
    return os.pread(output.fileno(), cap_bytes, 0)
