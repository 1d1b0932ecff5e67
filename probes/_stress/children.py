"""A suite in a child of its own, forked from the parent that has imported everything: it may die or stand still without taking the others along.

Where the import started threads or touched CUDA, a forked child may stand for ever: then each child is a fresh interpreter, which imports for itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from typing import Any, Callable, Dict, List, NamedTuple, NoReturn, Optional, Tuple

import _given
from _stress.look import Look, NotHereError, message_of

PR_SET_PDEATHSIG = 1  # linux/prctl.h
KEPT_BYTES = 30000  # of what a child prints: the dump of a fatal signal and some lines before it
CANARY_S = 10.0  # for some milliseconds of work


class Outcome(NamedTuple):
    """`how` is done, skipped, given (the user's object is none, `why` says it), raised, died or stood. `step` is the last that was begun.

    `rows` are what the suite wrote, `answer` what it returned (what JSON knows), `error` of an exception: type, message, frames. `signal` names the signal it died of.
    """

    how: str
    rows: List[Dict[str, Any]]
    step: str = ""
    why: str = ""
    answer: Any = None
    error: Optional[Dict[str, Any]] = None
    signal: str = ""
    took_s: float = 0.0


def in_a_child(run: Callable[[Look], Any], path: str, deadline_s: float, *, heard: bool = False) -> Outcome:
    """Call `run(look)` in a forked child and return what became of it, within `deadline_s` and a second.

    The child is a group of its own and is ended with all that it started. It volunteers for the OOM killer. What it prints is kept back, unless `heard`.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    began, (ear, mouth) = time.monotonic(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ear)
        if not heard:
            os.dup2(mouth, 1)
            os.dup2(mouth, 2)
        os.close(mouth)
        as_child(run, path, deadline_s)
    os.close(mouth)
    return _outcome(pid, ear, path, began, deadline_s)


def in_a_fresh_one(command: List[str], path: str, deadline_s: float) -> Outcome:
    """Like `in_a_child`, in a new interpreter that `command` starts; it calls `as_child`. For a parent that must not fork."""
    began = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    out: Any = child.stdout
    found = _outcome(child.pid, os.dup(out.fileno()), path, began, deadline_s)
    out.close()
    child.returncode = 0  # it was waited for
    return found


def why_not_fork(canary: Callable[[], Any], path: str) -> str:
    """Why a child that is forked now could stand still, though it is no fault of the model; empty where it may be forked.

    A child has only the thread that forked: what another held, it holds for ever (fork(2)), and CUDA refuses to work in it. Threads of Python are counted; of
    those of libraries, some live through a fork (OpenBLAS) and some do not (GNU's OpenMP), so a child tries with `canary`.
    """
    for one in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{one}").startswith("/dev/nvidia"):
                return "the import touched CUDA"
    if threading.active_count() > 1:
        return f"the import started {threading.active_count() - 1} threads"
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1 and in_a_child(lambda _: canary(), path, CANARY_S).how != "done":
        return f"the import started {threads - 1} threads of a library that does not live through a fork"
    return ""


def _outcome(pid: int, ear: int, path: str, began: float, deadline_s: float) -> Outcome:
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)
    status, tail = _ended(pid, ear, began + deadline_s)
    for _ in range(2):  # whoever it started, too
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
    stood = status is None
    if stood:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)  # where it left its group
        _, status = os.waitpid(pid, 0)
    rows = _rows(path)
    step = next((str(row["name"]) for row in reversed(rows) if row["row"] == "step"), "")
    took_s = time.monotonic() - began
    kept = [row for row in rows if row["row"] not in ("step", "ended")]
    ended = next((row for row in rows if row["row"] == "ended"), None)
    if ended is not None:
        return Outcome(ended["how"], kept, step, ended.get("why", ""), ended.get("answer"), ended.get("error"), "", took_s)
    if stood:
        at = _standing(path)
        return Outcome("stood", kept, step, f"does not end within {deadline_s:.0f} s" + (f", in {at}" if at else ""), took_s=took_s)
    number = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else 0
    name = signal_name(number)
    code = os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None
    why = (f"dies of {name}" if name else f"ends its process with exit code {code}") + _last_words(tail)
    return Outcome("died", kept, step, why, signal=name, took_s=took_s)


def signal_name(number: int) -> str:
    """`SIGKILL`; of one without a name (real-time signals) its number, and nothing for 0."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}" if number else ""


def as_child(run: Callable[[Look], Any], path: str, deadline_s: float) -> NoReturn:
    """Be the child: call `run`, write what came of it, and end."""
    ended: Dict[str, Any] = {"row": "ended", "how": "done"}
    me = os.getpid()
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        look = Look(path, deadline_s)
        stack = os.open(f"{path}.stack", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        faulthandler.dump_traceback_later(max(0.5, deadline_s - 0.5), file=stack)
        try:
            ended["answer"] = run(look)
        except NotHereError as error:
            ended.update(how="skipped", why=str(error))
        except _given.GivenError as error:
            ended.update(how="given", why=error.says)
        except BaseException as error:  # whatever the user's code raises, sys.exit too, is told by the parent
            frames = [
                {"file": one.filename, "line": one.lineno, "function": one.name, "text": (one.line or "")[:200]}
                for one in traceback.extract_tb(error.__traceback__)[-40:]
            ]
            ended.update(how="raised", error={"type": type(error).__name__, "message": message_of(error)[:2000], "frames": frames})
        if os.getpid() == me:  # a process that the user's code forked, and that came back here, is not heard
            look._write(ended)  # noqa: SLF001 - the last row is the child's, not the suite's
    finally:
        os._exit(0)


def _ended(pid: int, ear: int, until: float) -> Tuple[Optional[int], str]:
    """Wait for a child, and keep the end of what it prints: its status, None where it does not end, and that."""
    pause, tail, open_ = 0.002, b"", True
    os.set_blocking(ear, False)
    try:
        while True:
            found, status = os.waitpid(pid, os.WNOHANG)
            if open_ and select.select([ear], [], [], 0 if found else pause)[0]:
                part = os.read(ear, 1 << 16)
                open_, tail = bool(part), (tail + part)[-KEPT_BYTES:]
            elif not open_ and not found:
                time.sleep(pause)
            if found:
                return status, tail.decode("utf-8", "replace")
            if time.monotonic() > until:
                return None, tail.decode("utf-8", "replace")
            pause = min(pause * 1.5, 0.05)
    finally:
        os.close(ear)


def _standing(path: str) -> str:
    """The innermost frame of the user's where the child stood, as `file:line (function)`; empty where that is not known."""
    try:
        with open(f"{path}.stack", encoding="utf-8", errors="replace") as file:
            text = file.read(20000)
    except OSError:
        return ""
    return _innermost(text)


def _last_words(tail: str) -> str:
    """What a child printed last, and where faulthandler saw it die."""
    before, fatal, dump = tail.partition("Fatal Python error: ")
    last = next((line.strip() for line in reversed(before.splitlines()) if line.strip()), "")
    at = _innermost(dump) if fatal else ""
    return (f" in {at}" if at else "") + (f"; the last that it printed: {last[:200]}" if last else "")


def _innermost(text: str) -> str:
    """The innermost frame in a dump of faulthandler's that is neither torch's nor the interpreter's; the innermost of all where there is none."""
    here = text.partition("Current thread")[2].split("\n\n")[0] if "Current thread" in text else text.partition("most recent call first")[2]
    found = re.findall(r'File "([^"]+)", line (\d+) in (\S+)', here)
    own = [one for one in found if "/torch/" not in one[0] and not one[0].startswith("<")]
    return "{}:{} ({})".format(*(own or found)[0]) if found else ""


def _rows(path: str) -> List[Dict[str, Any]]:
    rows: List[Dict[str, Any]] = []
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
        for line in file:
            with contextlib.suppress(ValueError):  # the last may be cut where it died
                rows.append(json.loads(line))
    return rows
