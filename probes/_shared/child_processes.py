"""Child processes of a probe: programs in a fresh interpreter, forked functions, and questions that
may block in the kernel.

A child is a session of its own and is ended with all that it started. It writes to files, never to
a pipe: a grandchild that holds a pipe open makes a finished child look hung. The exception is
`ask`, whose questions are about file systems that may hang: its children hold nothing but the pipe,
and one that cannot be killed is left behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from _shared.child_program import is_ours
from _shared.memory import memory_limits
from _shared.proc import read_text

PR_SET_PDEATHSIG = 1  # linux/prctl.h
GRACE_S = 0.3
REPLY_CAP = 2**22
DUMP_LINE = re.compile(r'^  File "([^"]*)", line (\d+)(?: in (\S+))?', re.MULTILINE)
# looked up now: a forked child can no longer take the lock of dlopen
_prctl = ctypes.CDLL(None).prctl


class Ending(NamedTuple):
    """How a child ended: answered, timed_out (we killed it), oom_killed or died."""

    how: str
    exit_code: Optional[int]
    signal: Optional[int]
    oom_rise: int  # OOM kills in our cgroup since the child started


class PythonChild:
    """A program of ours in a fresh interpreter. Its files are FOLDER/KEY.*: `out` (what it
    prints), `now` (the step under way), `stack` (faulthandler's dump) and `json` (its answer).
    """

    def __init__(
        self, folder: str, key: str, argv: Sequence[str], variables: Mapping[str, object]
    ) -> None:
        self.folder, self.key, self.killed_by_us = folder, key, False
        self._kills = memory_limits().kills
        environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
        environment.pop("TRAINPROBE_EVENTS", None)
        with open(self.path("out"), "ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *argv],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.pid = self.process.pid

    def path(self, suffix: str) -> str:
        return os.path.join(self.folder, f"{self.key}.{suffix}")

    def text(self, suffix: str) -> str:
        return read_text(self.path(suffix))

    def alive(self) -> bool:
        return self.process.poll() is None

    def answered(self) -> bool:
        """Whether there is nothing more to wait for."""
        return not self.alive() or os.path.exists(self.path("json"))

    def ready(self) -> bool:
        return self.answered() or os.path.exists(self.path("ready"))

    def end(self, abort_s: float = 2.0) -> None:
        """End a running child by SIGABRT (faulthandler writes stacks), then SIGKILL."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5.0 if os.path.exists(self.path("json")) else 0.0)
        for number, wait_s in ((signal.SIGABRT, abort_s), (signal.SIGKILL, 3.0)):
            if self.alive():
                self.killed_by_us = True
                self.process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(wait_s)
        kill_group(self.pid)

    def ending(self) -> Ending:
        """How it ended; call `end` first."""
        code, rise = self.process.returncode, memory_limits().kills - self._kills
        by_us = self.killed_by_us or code is None
        oom = code == -signal.SIGKILL and rise > 0 and not by_us
        how = (
            "oom_killed"
            if oom
            else "answered"
            if os.path.exists(self.path("json"))
            else "timed_out"
            if by_us
            else "died"
        )
        return Ending(
            how,
            code if (code or 0) >= 0 else None,
            -code if code is not None and code < 0 and not by_us else None,
            rise,
        )

    def frames(self) -> List[Dict[str, Any]]:
        return frames_of_dump(self.text("stack"))


def rank_variables(rank: int, ranks: int, port: int) -> Dict[str, object]:
    """What torchrun sets for a rank of a job on this host alone."""
    return {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": ranks,
        "LOCAL_WORLD_SIZE": ranks,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }


def signal_name(number: int) -> str:
    """`SIGKILL`; "" for 0; `signal 40` where the number has no name (real-time signals)."""
    try:
        return signal.Signals(number).name if number else ""
    except ValueError:
        return f"signal {number}"


def kill_group(pid: int) -> None:
    """Kill what the child has started, too: compilers would go on without it."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def frames_of_dump(dump: str, *, crashed: bool = False) -> List[Dict[str, Any]]:
    """The main thread's frames in faulthandler's dump, outermost first, without ours; of a crash
    those of the crashed thread. faulthandler prints the main thread last, innermost frame first.
    """
    parts = re.split(r"^(Current thread|Thread) 0x[^\n]*$", dump, flags=re.MULTILINE)
    blocks = [*zip(parts[1::2], parts[2::2])] or [("", dump)]
    current = [text for kind, text in blocks if kind.startswith("Current")] if crashed else []
    rows = DUMP_LINE.findall(current[-1] if current else blocks[-1][1])
    return [
        {
            "file": file,
            "line": int(line),
            "function": function,
            "text": source_line(file, int(line)),
        }
        for file, line, function in reversed(rows)
        if not is_ours(file)
    ]


def source_line(path: str, number: int) -> str:
    lines = read_text(path).splitlines() if os.path.isfile(path) else []
    return lines[number - 1].strip()[:200] if 0 < number <= len(lines) else ""


def fork(work: Callable[[], object], output: str = "") -> int:
    """Fork a child that calls `work` and ends; return its pid. It dies with this process."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a stream that the user's code has closed
            stream.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        _die_with_parent()
        if output:
            file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(file, 1)
            os.dup2(file, 2)
        work()
    finally:
        os._exit(0)


def wait_status(pid: int, until: float) -> Optional[int]:
    """The wait status of a forked child; None where it has not ended by `until` (monotonic)."""
    pause = 0.002
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > until:
            return None
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


class Answer(NamedTuple):
    """The answer to a question. `how` is answered, raised, timed_out, stuck (unkillable) or died;
    `reply` is the result or the error's text; `where` the blocking kernel function, if known.
    """

    how: str
    reply: Any
    took_s: float
    pid: int
    where: str = ""


def ask(question: Callable[[], Any], deadline_s: float) -> Answer:
    """Ask one question in a child that can be left behind."""
    return ask_all([question], deadline_s)[0]


def ask_all(questions: Sequence[Callable[[], Any]], deadline_s: float) -> List[Answer]:
    """Ask all at once, each in its own child, with one deadline for all."""
    began = time.monotonic()
    pids = dict(_start(question) for question in questions)
    answers: Dict[int, Answer] = {}
    replies: Dict[int, bytes] = dict.fromkeys(pids, b"")
    while len(answers) < len(pids) and time.monotonic() < began + deadline_s:
        waiting = [pipe for pipe in pids if pipe not in answers]
        left_s = max(0.0, began + deadline_s - time.monotonic())
        for pipe in select.select(waiting, [], [], left_s)[0]:
            piece = os.read(pipe, 65536)
            replies[pipe] += piece
            if not piece or len(replies[pipe]) > REPLY_CAP:
                answers[pipe] = _parsed(replies[pipe], time.monotonic() - began, pids[pipe])
    for pipe, pid in pids.items():
        if pipe not in answers:
            answers[pipe] = _killed(pid, deadline_s)
        os.close(pipe)
        with contextlib.suppress(OSError):
            os.waitpid(pid, os.WNOHANG)  # init reaps one that is not gone yet
    return [answers[pipe] for pipe in pids]


def ask_program(command: Sequence[str], deadline_s: float) -> Answer:
    """Run a program; the reply is [exit status, what it printed]."""
    return ask(lambda: run_program(command, deadline_s), deadline_s + 0.5)


def run_program(command: Sequence[str], deadline_s: float) -> List[Any]:
    """Like `ask_program`, for a caller that is already a child."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=deadline_s,
        check=False,
        preexec_fn=_die_with_parent,
    )
    return [done.returncode, (done.stdout or done.stderr)[:REPLY_CAP].decode("utf-8", "replace")]


def _die_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _start(question: Callable[[], Any]) -> tuple[int, int]:
    """Start a child; return the pipe of its reply, and its pid."""
    reading, writing = os.pipe()

    def work() -> None:
        _close_all_but(writing)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            reply = {"reply": question()}
        except BaseException as error:  # it goes to the parent as the answer
            reply = {"error": f"{type(error).__name__}: {error}"[:1000]}
        rest = json.dumps(reply, default=repr).encode()[:REPLY_CAP]
        while rest:
            rest = rest[os.write(writing, rest) :]

    pid = fork(work)
    os.close(writing)
    return reading, pid


def _close_all_but(writing: int) -> None:
    """A reader of our output must see its end even where this child never ends."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != writing:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _parsed(text: bytes, took_s: float, pid: int) -> Answer:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)  # nobody waits for its clean-up
    try:
        reply = json.loads(text)
    except ValueError:
        return Answer("died", "the child ended without an answer", took_s, pid)
    if "error" in reply:
        return Answer("raised", reply["error"], took_s, pid)
    return Answer("answered", reply["reply"], took_s, pid)


def _killed(pid: int, deadline_s: float) -> Answer:
    where, late = kernel_function(pid), f"no answer within {deadline_s:g} s"
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        if wait_status(pid, time.monotonic() + GRACE_S) is not None:
            return Answer("timed_out", late, deadline_s, pid, where)
    late += ", and the process cannot be killed"
    return Answer("stuck", late, deadline_s, pid, where or kernel_function(pid))


def kernel_function(pid: int) -> str:
    """The kernel function that a process sleeps in; "" where the kernel does not say."""
    text = read_text(f"/proc/{pid}/wchan").strip()
    return "" if text == "0" else text
