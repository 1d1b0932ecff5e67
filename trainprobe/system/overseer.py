"""A process over our own: whatever hangs in the one that works, a word of what is known comes in
time, and an end.

A thread could not do it: a system call that does not come back keeps its whole process from ending,
and a long computation keeps other threads from running.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, NoReturn, Optional

PR_SET_PDEATHSIG = 1
LINE_BYTES = 4096  # PIPE_BUF of Linux: so much is written whole or not at all
MOST_ROWS = 2000
LAST_WORD_S = 4.0
LOOK_AGAIN_S = 0.1
GONE_S = 0.3  # for a killed process that can go
ABANDONED = 3
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_pipe: List[int] = []  # of the process that works, where one is over it


@dataclass
class Known:
    """What the working process has told until now: the newest word for each name, and all rows.
    `after_s` is when it was given up, `told_s` when each word came, in seconds from the start.
    """

    words: Dict[str, Any] = field(default_factory=dict)
    rows: List[Dict[str, Any]] = field(default_factory=list)
    told_s: Dict[str, float] = field(default_factory=dict)
    after_s: float = 0.0


def tell(**fields: Any) -> None:
    """Tell the process over us: `within_s` is how long we may take, counted from the start;
    `row` is kept beside earlier ones. Nothing without one, and never a wait.
    """
    if not _pipe:
        return
    with contextlib.suppress(OSError, ValueError, TypeError):
        line = json.dumps(fields).encode() + b"\n"
        if len(line) <= LINE_BYTES:
            os.write(_pipe[0], line)


def oversee(within_s: float, last_word: Callable[[Known], int]) -> None:
    """Go on in a child process: this returns there alone. The process that called waits for it,
    passes signals on, and ends with its exit code.

    After `within_s`, or as long as the child says by `tell`, the child is killed and not waited
    for; `last_word` gets what it told, and returns the exit code. A last word that does not end
    either, as into a pipe that nobody reads, is given up after some seconds.
    """
    began, own = time.monotonic(), os.getpid()
    theirs, own_end = os.pipe()
    # A signal that comes before the handlers are there waits for them.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(theirs)
        os.set_blocking(own_end, False)
        _pipe[:] = [own_end]
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != own:  # it ended in between
            os._exit(ABANDONED)
        return
    os.close(own_end)
    for number in _FORWARDED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda heard, _frame: _pass_on(child, heard))
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    known = Known()
    status = _watched(child, theirs, began, within_s, known)
    if status is not None:
        _end_as(status)
    known.after_s = time.monotonic() - began
    _pass_on(child, signal.SIGKILL)
    until = time.monotonic() + GONE_S
    while time.monotonic() < until and os.waitpid(child, os.WNOHANG)[0] != child:
        time.sleep(0.01)
    _speak(known, last_word)


def _pass_on(child: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(child, number)


def _watched(child: int, pipe: int, began: float, within_s: float, known: Known) -> Optional[int]:
    """Return the wait status of the child, None when its time is over."""
    rest, open_ = b"", True
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid == child:
            return status
        wanted = known.words.get("within_s")
        left_s = (
            began + (wanted if isinstance(wanted, (int, float)) else within_s) - time.monotonic()
        )
        if left_s <= 0:
            return None
        if not open_:
            time.sleep(0.01)
        elif select.select([pipe], [], [], min(LOOK_AGAIN_S, left_s))[0]:
            part = os.read(pipe, 2**16)
            open_ = bool(part)
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                _note(known, line, time.monotonic() - began)


def _note(known: Known, line: bytes, now_s: float) -> None:
    with contextlib.suppress(ValueError):
        fields = json.loads(line)
        row = fields.pop("row", None)
        known.words.update(fields)
        known.told_s.update(dict.fromkeys(fields, now_s))
        if isinstance(row, dict) and len(known.rows) < MOST_ROWS:
            known.rows.append(row)


def _end_as(status: int) -> NoReturn:
    """End as the child has, by the same signal too."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(128 + number)
    os._exit(os.WEXITSTATUS(status))


def _speak(known: Known, last_word: Callable[[Known], int]) -> NoReturn:
    def too_long(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 0.5)  # should stderr block as well
        os.write(
            2, b"trainprobe: Nothing was decided in time, and the report could not be written.\n"
        )
        os._exit(ABANDONED)

    signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, LAST_WORD_S)
    code = ABANDONED
    try:
        code = last_word(known)
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception as error:  # noqa: BLE001 - whatever fails here, this process ends now
        with contextlib.suppress(OSError):
            os.write(
                2,
                f"trainprobe: Nothing was decided within {known.after_s:.0f} s"
                f" ({type(error).__name__}).\n".encode(),
            )
    os._exit(code)
