"""Run one short program, such as py-spy: bounded in time and size, and without a shell."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import select
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import IO, Callable, List, Mapping, Optional, Sequence, Tuple

from trainprobe.model.evidence import Ended
from trainprobe.system.anonymous_files import anonymous_file
from trainprobe.system.child import ended_from_status
from trainprobe.system.tree import kill_below

PR_SET_PDEATHSIG = 1
LOOK_AGAIN_S = 0.05
TAIL_BYTES = 4096
BEHIND_S = 0.5  # for a program that has said all to end by itself
KILL_S = 2.0  # how long a killed program may take to go before it counts as unkillable

_libc = ctypes.CDLL(None)
_left_behind: List[
    subprocess.Popen[bytes]
] = []  # could not be killed; each later run looks whether they have gone


@dataclass(frozen=True)
class Ran:
    """The result; `stdout` and `stderr` hold at most the cap each, `cut` if there was more."""

    argv: Tuple[str, ...]
    ended: Ended
    stdout: bytes
    stderr: bytes
    cut: bool


def run(  # noqa: PLR0913 - one parameter per way to bound it
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Optional[Mapping[str, str]] = None,
    cwd: Optional[str] = None,
    output_cap_bytes: int = 8 * 2**20,
    input: Optional[bytes] = None,  # noqa: A002 - as in subprocess.run
    kill_s: float = KILL_S,
    given_up: Callable[[], bool] = lambda: False,
    hold_input: bool = False,
    enough: Callable[[bytes], bool] = lambda _: False,
    without_fork: bool = False,
) -> Ran:
    """Run `argv` in a session of its own and return when it has ended, `timeout_s` has passed, or
    `given_up()` says that nobody waits any more.

    At the deadline its group and everything below it is killed (`ended.how` is timed_out). What it
    leaves in its group after a good end is killed as well. Nothing is raised for a program that is
    missing or fails. One that is still there `kill_s` after it was killed is `unkillable`; what it
    had written until then is returned all the same. `enough` is asked with the end of its output,
    some kilobytes, whenever there is more: a program that has said all and does not end is waited
    for no longer. With `hold_input` its stdin stays open behind `input` as long as we wait: a
    program that is far away sees by its end that nobody does any more. `without_fork` is for who
    starts thousands: to copy the page tables of a process of 300 MB takes some 10 ms each time.
    """
    argv = tuple(argv)
    starter = _ends_with_us(argv[0], env) if without_fork and argv else ()
    _left_behind[:] = [process for process in _left_behind if process.poll() is None]
    with (
        _Input(input or b"", hold=hold_input) as stdin,
        anonymous_file("stdout") as stdout,
        anonymous_file("stderr") as stderr,
    ):
        began = time.monotonic()
        try:
            process = subprocess.Popen(
                (*starter, *argv),
                stdin=stdin.end,
                stdout=stdout,
                stderr=stderr,
                env=env,
                cwd=cwd,
                start_new_session=True,
                preexec_fn=None if starter else _die_with_us,  # noqa: PLW1509 - it makes one system call and takes no lock, so threads do not matter
            )
        except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            reason = f"{argv[0] if argv else 'nothing'} cannot be run: {why}"
            return Ran(
                argv, Ended("not_started", reason=reason, at=time.time()), b"", b"", cut=False
            )
        stdin.started()

        output = _Output(stdout, enough)

        def nobody_waits() -> bool:
            stdin.push()
            return given_up() or output.all()

        cut, in_time = [False], False
        try:
            in_time = _wait(
                process.pid,
                began + timeout_s,
                (stdout, stderr),
                output_cap_bytes,
                cut,
                nobody_waits,
            )
        finally:
            if not in_time:
                kill_below({process.pid})
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # not reaped yet, so the group is still its own
        gone = _wait(
            process.pid, time.monotonic() + kill_s, (stdout, stderr), output_cap_bytes, cut
        )
        took_s, at = time.monotonic() - began, time.time()
        if not gone:
            _left_behind.append(process)
            ended = Ended(
                "unkillable",
                reason=f"SIGKILL did not end it within {kill_s:g} s",
                by_us=True,
                at=at,
                took_s=took_s,
            )
        else:
            ended = ended_from_status(_reap(process), at=at, took_s=took_s)
            if not in_time:
                late = f"it gave no answer within {min(took_s, timeout_s):.3g} s"
                ended = Ended(
                    "timed_out",
                    signal=ended.signal,
                    by_us=True,
                    phase="run",
                    reason=late,
                    at=at,
                    took_s=took_s,
                )
        return Ran(
            argv,
            ended,
            _read(stdout, output_cap_bytes),
            _read(stderr, output_cap_bytes),
            cut=cut[0],
        )


class _Output:
    """Whether a program has said all, for a moment already."""

    def __init__(self, output: IO[bytes], enough: Callable[[bytes], bool]) -> None:
        self._output, self._enough = output, enough
        self._size, self._since = 0, 0.0

    def all(self) -> bool:
        size = os.fstat(self._output.fileno()).st_size
        if size != self._size:
            self._size = size
            tail = os.pread(self._output.fileno(), TAIL_BYTES, max(0, size - TAIL_BYTES))
            self._since = time.monotonic() if self._enough(tail) else 0.0
        return bool(self._since) and time.monotonic() - self._since > BEHIND_S


class _Input:
    """A program's input: a file, or a pipe that stays open. `end` is the program's side."""

    def __init__(self, content: bytes, *, hold: bool) -> None:
        self._left, self._pipe = memoryview(content), -1
        self._file: Optional[IO[bytes]] = None
        if hold:
            self.end, self._pipe = os.pipe()
            os.set_blocking(self._pipe, False)
        else:
            self._file = anonymous_file("stdin")
            self._file.write(content)
            self._file.seek(0)
            self.end = self._file.fileno()

    def __enter__(self) -> _Input:  # noqa: PYI034 - Self is newer than Python 3.9
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
        else:
            os.close(self._pipe)
            self.started()

    def started(self) -> None:
        """The program has its side: ours goes, so that a program that is gone is seen to be."""
        if self._pipe >= 0 and self.end >= 0:
            os.close(self.end)
            self.end = -1

    def push(self) -> None:
        """Write as much as the pipe takes. A program that does not read it is no error of ours."""
        with contextlib.suppress(OSError):
            while self._pipe >= 0 and self._left:
                self._left = self._left[os.write(self._pipe, self._left) :]


def _die_with_us() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _ends_with_us(program: str, env: Optional[Mapping[str, str]]) -> Tuple[str, ...]:
    """The command that starts another one so that it ends when we do, without a line of ours in
    the child: then Python calls vfork. Empty where there is none, or no such program.
    """
    path = None if env is None else env.get("PATH")
    return _setpriv() if shutil.which(program, path=path) else ()


@functools.lru_cache(maxsize=1)
def _setpriv() -> Tuple[str, ...]:
    """setpriv(1) has had the option since util-linux 2.33, and not in BusyBox."""
    found = shutil.which("setpriv")
    argv = (found or "", "--pdeathsig", "KILL", "--")
    return argv if found and run((*argv, "true"), timeout_s=2.0).ended.code == 0 else ()


def _reap(process: subprocess.Popen[bytes]) -> int:
    code = process.wait()
    return -code if code < 0 else code << 8


def _wait(
    pid: int,
    until: float,
    outputs: Sequence[IO[bytes]],
    cap_bytes: int,
    cut: List[bool],
    given_up: Callable[[], bool] = lambda: False,
) -> bool:
    """Wait without reaping, which keeps the pid. Return False when the time is up."""
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
            if left_s <= 0 or given_up():
                return False
            waiting.poll(min(LOOK_AGAIN_S, left_s) * 1000)
    finally:
        if pidfd >= 0:
            os.close(pidfd)


def _read(output: IO[bytes], cap_bytes: int) -> bytes:
    # Python sets aside as much memory as it is told to read
    size = os.fstat(output.fileno()).st_size
    return os.pread(output.fileno(), min(size, cap_bytes), 0)
