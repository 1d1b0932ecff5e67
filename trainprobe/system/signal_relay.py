"""Signals for a command that we stand before: what reaches us and not the command is passed on.

A terminal, `timeout` and some schedulers signal a whole process group or session, so that the
command has the signal already; `kill PID` and a container's runtime signal us alone. A listener
tells the two apart: a process of ours, in the same group and session as the command, that does
nothing but hear the same signals. What it hears as well was meant for all.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import time
from typing import Any, Dict, List, NoReturn, Optional, Tuple

PR_SET_PDEATHSIG = 1
# A terminal signals all processes of a group in one system call; a scheduler takes some
# milliseconds for the processes of a job.
TOGETHER_S = 0.06
STALE_S = 2.0
FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGPWR,
    signal.SIGXCPU,
    signal.SIGTSTP,
    signal.SIGCONT,
)
ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU})


class SignalRelay:
    """While it is open, signals wait in `fileno()` and `arrived()` tells which of them the command
    has got already. Open it before there are threads, and start the command afterwards.

    What was ignored when we were started (nohup, a shell's background) is ignored by the command
    too, unless it decides otherwise: `start_over_ignored()` when it has been started.
    """

    def __init__(self) -> None:
        self._heard: Dict[int, List[float]] = {}
        self._listener = -1
        self._from_listener = -1
        self._ignored = [one for one in FORWARDED if signal.getsignal(one) is signal.SIG_IGN]
        numbers = [one for one in FORWARDED if one not in self._ignored]
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._listen()
        self._before: Dict[int, Any] = {one: signal.signal(one, _do_nothing) for one in numbers}
        self._wakeup_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def start_over_ignored(self) -> None:
        """Pass on what we ignore, too: the command has inherited that, and may have changed it."""
        for number in self._ignored:
            self._before[number] = signal.signal(number, _do_nothing)

    def fileno(self) -> int:
        """Readable when a signal has come."""
        return self._read

    def arrived(self) -> List[Tuple[int, bool]]:
        """The signals that came, in order, and whether each was for us alone, so that it has to be
        passed on. Takes up to 60 ms for each.
        """
        with contextlib.suppress(BlockingIOError):
            came = [one for one in os.read(self._read, 4096) if one in self._before]
            return [(number, not self._heard_by_all(number)) for number in came]
        return []

    def close(self) -> None:
        """End the listener and give the old handlers back."""
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._listener > 0:
            with contextlib.suppress(OSError):
                os.kill(self._listener, signal.SIGKILL)
                os.waitpid(self._listener, 0)
        for fd in (self._read, self._write, self._from_listener):
            with contextlib.suppress(OSError):
                os.close(fd)

    def _listen(self) -> None:
        theirs, own = os.pipe2(os.O_CLOEXEC)
        parent = os.getpid()
        try:
            child = os.fork()
        except OSError:  # no process to spare: then everything is passed on
            os.close(own)
            self._from_listener = theirs
            return
        if child == 0:
            _listener(own, parent)
        os.close(own)
        os.set_blocking(theirs, False)
        self._listener, self._from_listener = child, theirs

    def _heard_by_all(self, number: int) -> bool:
        ends = time.monotonic() + TOGETHER_S
        while True:
            self._take_heard()
            known = self._heard.get(number, [])
            while known and time.monotonic() - known[0] > STALE_S:
                known.pop(0)
            if known:
                known.pop(0)
                return True
            left_s = ends - time.monotonic()
            if left_s <= 0 or self._listener < 0:
                return False
            select.select([self._from_listener], [], [], left_s)

    def _take_heard(self) -> None:
        with contextlib.suppress(OSError):
            said = os.read(self._from_listener, 4096)
            if not said:  # somebody has ended the listener
                self._listener = -1
            for number in said:
                self._heard.setdefault(number, []).append(time.monotonic())


def pass_on(pidfd: Optional[int], pid: int, number: int) -> None:
    """Send a signal to the command, and to nobody else who may have its number by now."""
    with contextlib.suppress(OSError):
        if pidfd is not None:
            signal.pidfd_send_signal(pidfd, number)
        else:
            os.kill(pid, number)


def end_like(status: int) -> NoReturn:
    """End this process as another one ended: with its exit code or by the same signal, without a
    core file of our own. Where a signal cannot end us, as in process 1, 128 + n is the code.
    """
    if not os.WIFSIGNALED(status):
        os._exit(os.WEXITSTATUS(status))
    import resource

    number = os.WTERMSIG(status)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(128 + number)


def _do_nothing(_number: int, _frame: object) -> None:
    """The number is written to the wake-up pipe before this is called."""


def _listener(own: int, parent: int) -> NoReturn:
    """Write each signal that comes; they are blocked here, so that none ends or stops us. One that
    is ignored would not come at all.
    """
    for number in FORWARDED:
        signal.signal(number, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):  # whoever reads the command's output waits for the last one who has it
        os.dup2(nowhere, fd)
    while os.getppid() == parent:
        try:
            os.write(own, bytes([signal.sigwait(FORWARDED)]))
        except OSError:
            break
    os._exit(0)
