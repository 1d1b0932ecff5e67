"""Asks a question in a forked child: what blocks in the kernel then blocks a process that can be left behind.

The child is killed at the deadline. One that does not die of it sleeps uninterruptibly (D state): it is told and never waited for.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import time
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

GRACE_S = 0.3
REPLY_CAP = 2**22
PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Answer(NamedTuple):
    """`how` is answered, raised, timed_out, stuck (it does not even die) or died; `reply` is what the child gave, or its error's text.

    `pid` is the child's, `where` the kernel function in which it was stuck, "" where that is not told.
    """

    how: str
    reply: Any
    took_s: float
    pid: int
    where: str = ""


def ask(question: Callable[[], Any], deadline_s: float) -> Answer:
    """Ask one question."""
    return ask_all([question], deadline_s)[0]


def ask_all(questions: Sequence[Callable[[], Any]], deadline_s: float) -> List[Answer]:
    """Ask all at once, each in its own child, with one deadline for all."""
    began = time.monotonic()
    started = [_start(question) for question in questions]
    ends = began + deadline_s
    answers: Dict[int, Answer] = {}
    parts: Dict[int, bytes] = {pipe: b"" for _, pipe in started}
    pids = {pipe: pid for pid, pipe in started}
    while len(answers) < len(started) and time.monotonic() < ends:
        ready, _, _ = select.select([pipe for pipe in pids if pipe not in answers], [], [], max(0.0, ends - time.monotonic()))
        for pipe in ready:
            piece = os.read(pipe, 65536)
            parts[pipe] += piece
            if not piece or len(parts[pipe]) > REPLY_CAP:
                answers[pipe] = _understood(parts[pipe], time.monotonic() - began, pids[pipe])
    for pipe in (pipe for pipe in pids if pipe not in answers):
        answers[pipe] = _killed(pids[pipe], deadline_s)
    for pid, pipe in started:
        os.close(pipe)
        with contextlib.suppress(OSError):
            os.waitpid(pid, os.WNOHANG)  # one that is not gone yet is reaped by whoever inherits it
    return [answers[pipe] for _, pipe in started]


def ask_program(words: Sequence[str], deadline_s: float) -> Answer:
    """Run a program; the reply is [exit status, what it printed]. It dies with the child that started it, unless it hangs in the kernel."""
    return ask(lambda: run_program(words, deadline_s), deadline_s + 0.5)


def run_program(words: Sequence[str], deadline_s: float) -> List[Any]:
    """The same for who is a child already."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=deadline_s, check=False, preexec_fn=_die_with_parent)
    return [done.returncode, (done.stdout or done.stderr)[:REPLY_CAP].decode("utf-8", "replace")]


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _start(question: Callable[[], Any]) -> Tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:  # the child: it only asks, writes and ends, whatever happens
        _let_go(writing)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            reply = {"reply": question()}
        except BaseException as error:  # it goes to the parent as the answer
            reply = {"error": f"{type(error).__name__}: {error}"[:1000]}
        rest = json.dumps(reply, default=repr).encode()[:REPLY_CAP]
        while rest:
            rest = rest[os.write(writing, rest) :]
    finally:
        os._exit(0)


def _let_go(writing: int) -> None:
    """Close all but the reply's pipe: whoever reads our output must see its end even where this child never ends."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != writing:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _understood(text: bytes, took_s: float, pid: int) -> Answer:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)  # it has said all; what its clean-up does is not waited for
    try:
        reply = json.loads(text)
    except ValueError:
        return Answer("died", "the child ended without an answer", took_s, pid)
    return Answer("raised", reply["error"], took_s, pid) if "error" in reply else Answer("answered", reply["reply"], took_s, pid)


def _killed(pid: int, deadline_s: float) -> Answer:
    where = waits_in(pid)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    ends = time.monotonic() + GRACE_S
    while time.monotonic() < ends:
        with contextlib.suppress(OSError):
            if os.waitpid(pid, os.WNOHANG)[0]:
                return Answer("timed_out", f"no answer within {deadline_s:g} s", deadline_s, pid, where)
        time.sleep(0.01)
    return Answer("stuck", f"no answer within {deadline_s:g} s, and the process cannot be killed", deadline_s, pid, where or waits_in(pid))


def waits_in(pid: int) -> str:
    """The kernel function that a process sleeps in; "" where the kernel does not tell."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/wchan", encoding="ascii", errors="replace") as file:
        text = file.read(200).strip()
        return "" if text == "0" else text
    return ""
