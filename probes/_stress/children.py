"""A suite in a child of its own, forked from the parent that has imported everything: it may die or stand still without taking the others along."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pickle
import signal
import sys
import time
import traceback
from typing import Any, Callable, Dict, List, NamedTuple, NoReturn, Optional

import _given
from _stress.look import Look, NotHereError

PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Outcome(NamedTuple):
    """`how` is done, skipped, given (the user's object is none, `why` says it), raised, died or stood. `step` is the last that was begun.

    `rows` are what the suite wrote, `answer` what it returned, `error` of an exception: type, message, frames. `signal` names the signal it died of.
    """

    how: str
    rows: List[Dict[str, Any]]
    step: str = ""
    why: str = ""
    answer: Any = None
    error: Optional[Dict[str, Any]] = None
    signal: str = ""
    took_s: float = 0.0


def in_a_child(run: Callable[[Look], Any], path: str, deadline_s: float) -> Outcome:
    """Call `run(look)` in a forked child and return what became of it, within `deadline_s` and a second.

    The child is a group of its own and is ended with all that it started. It volunteers for the OOM killer.
    """
    began = time.monotonic()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _child(run, path, deadline_s)
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)
    status = _ended(pid, began + deadline_s)
    for _ in range(2):  # whoever it started, too
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
    stood = status is None
    if stood:
        _, status = os.waitpid(pid, 0)
    rows = _rows(path)
    step = next((str(row["name"]) for row in reversed(rows) if row["row"] == "step"), "")
    took_s = time.monotonic() - began
    kept = [row for row in rows if row["row"] not in ("step", "ended")]
    ended = next((row for row in rows if row["row"] == "ended"), None)
    if ended is not None:
        return Outcome(ended["how"], kept, step, ended.get("why", ""), _answer(path), ended.get("error"), "", took_s)
    if stood:
        return Outcome("stood", kept, step, f"did not end within {deadline_s:.0f} s", took_s=took_s)
    number = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else 0
    name = signal.Signals(number).name if number in set(signal.Signals) else ""
    code = os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None
    return Outcome("died", kept, step, f"died of {name}" if name else f"left with exit code {code}", signal=name, took_s=took_s)


def _child(run: Callable[[Look], Any], path: str, deadline_s: float) -> NoReturn:
    ended: Dict[str, Any] = {"row": "ended", "how": "done"}
    try:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        look = Look(path, deadline_s)
        try:
            answer = run(look)
            with open(f"{path}.answer", "wb") as out:
                pickle.dump(answer, out)
        except NotHereError as error:
            ended.update(how="skipped", why=str(error))
        except _given.GivenError as error:
            ended.update(how="given", why=error.says)
        except BaseException as error:
            frames = [
                {"file": one.filename, "line": one.lineno, "function": one.name, "text": (one.line or "")[:200]}
                for one in traceback.extract_tb(error.__traceback__)[-40:]
            ]
            ended.update(how="raised", error={"type": type(error).__name__, "message": str(error)[:2000], "frames": frames})
        look._write(ended)  # noqa: SLF001 - the last row is the child's, not the suite's
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        os._exit(0)


def _ended(pid: int, until: float) -> Optional[int]:
    pause = 0.002
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        if time.monotonic() > until:
            return None
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


def _rows(path: str) -> List[Dict[str, Any]]:
    rows: List[Dict[str, Any]] = []
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
        for line in file:
            with contextlib.suppress(ValueError):  # the last may be cut where it died
                rows.append(json.loads(line))
    return rows


def _answer(path: str) -> Any:
    """What our own child pickled a moment ago, into our own folder."""
    try:
        with open(f"{path}.answer", "rb") as file:
            return pickle.load(file)  # noqa: S301
    except (OSError, EOFError, pickle.UnpicklingError):
        return None
