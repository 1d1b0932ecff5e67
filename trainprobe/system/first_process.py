"""Process 1 of a container: it takes over every orphan, and whatever ends must be waited for."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from typing import Callable, NoReturn, Optional

from trainprobe.system.signal_relay import FORWARDED, SignalRelay, end_like


def stand_before() -> Callable[[int], None]:
    """Where we are process 1, go on in a child: this returns there alone. Process 1 passes signals
    on, waits for whoever ends, and ends as the child does.

    Call what is returned with the pid of the command: process 1 waits for that one itself, should
    the child be killed.
    """
    if os.getpid() != 1:
        return _tell_nobody
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    theirs, own = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        os.close(theirs)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return lambda pid: _tell(own, pid)
    os.close(own)
    os.set_blocking(theirs, False)
    relay = SignalRelay()
    relay.start_over_ignored()
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)  # it wakes the poll below
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return _serve(child, theirs, relay)


def _tell_nobody(_pid: int) -> None:
    """There is no process 1 of ours."""


def _tell(pipe: int, pid: int) -> None:
    with contextlib.suppress(OSError):
        os.write(pipe, b"%d\n" % pid)


def _serve(child: int, told: int, relay: SignalRelay) -> NoReturn:
    command: Optional[int] = None
    awaited = child
    while True:
        select.select([relay.fileno()], [], [], 1.0)
        for number, alone in relay.arrived():
            if alone:
                with contextlib.suppress(OSError):
                    os.kill(awaited, number)
        with contextlib.suppress(OSError, ValueError, IndexError):
            command = int(os.read(told, 64).split()[0])
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                end_like(9)
            if pid == 0:
                break
            if pid != awaited:
                continue
            if awaited == child and os.WIFSIGNALED(status) and _lives(command):
                awaited = command or child  # it is ours now
                continue
            end_like(status)


def _lives(pid: Optional[int]) -> bool:
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
