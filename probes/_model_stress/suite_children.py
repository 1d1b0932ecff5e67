"""Runs each suite in a child of its own, forked from the parent that has imported everything: a
suite that dies or hangs does not affect the others.

Where the import started threads or touched CUDA, a forked child may hang for ever: then each child
is a fresh interpreter, which does its own imports.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, NoReturn, Optional, Sequence

from _model_stress.findings import Findings, NotApplicableError
from _shared import child_program, named_object
from _shared.child_processes import (
    PythonChild,
    fork,
    frames_of_dump,
    kill_group,
    signal_name,
    wait_status,
)
from _shared.proc import read_text

TAIL = 30000  # of what a child prints: the dump of a fatal signal and some lines before it
CANARY_S = 10.0  # for some milliseconds of work


class Outcome(NamedTuple):
    """`how` is done, skipped, given (the named object cannot be loaded), raised, died or stood;
    `step` is the last. `rows` are the suite's, `answer` its JSON, `error` has type, message and
    frames, `signal` ended it.
    """

    how: str
    rows: List[Dict[str, Any]]
    step: str = ""
    why: str = ""
    answer: Any = None
    error: Optional[Dict[str, Any]] = None
    signal: str = ""
    took_s: float = 0.0


def in_a_child(
    run: Callable[[Findings], Any], path: str, deadline_s: float, *, visible: bool = False
) -> Outcome:
    """Call `run(findings)` in a forked child; return how it ended, within `deadline_s` and a
    second. The child is a session, ended with all that it started, and volunteers for the OOM
    killer. Its output goes to a file, unless it is `visible`.
    """
    began = time.monotonic()
    output = "" if visible else f"{path}.out"
    pid = fork(lambda: as_child(run, path, deadline_s), output)
    status = wait_status(pid, began + deadline_s)
    _end_all_of(pid)
    if status is None:
        os.waitpid(pid, 0)
    return _outcome(path, began, deadline_s, status)


def in_fresh_interpreter(argv: Sequence[str], path: str, deadline_s: float) -> Outcome:
    """Like `in_a_child`, in a new interpreter that runs `argv`, for a parent that must not fork."""
    began = time.monotonic()
    child = PythonChild(os.path.dirname(path), os.path.basename(path), argv, {})
    while child.alive() and time.monotonic() < began + deadline_s:
        time.sleep(0.02)
    stood = child.alive()
    _end_all_of(child.pid)
    code = child.process.wait()
    status = None if stood else -code if code < 0 else code << 8
    return _outcome(path, began, deadline_s, status)


def why_not_fork(canary: Callable[[], Any], path: str) -> str:
    """Why a forked child could hang through no fault of the model; "" where forking is safe.

    Only the forking thread lives on (fork(2)): others' locks stay locked, and CUDA refuses to work.
    Some libraries' threads survive a fork (OpenBLAS), some do not (GNU's OpenMP): a child tries
    `canary`.
    """
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith("/dev/nvidia"):
                return "the import touched CUDA"
    if threading.active_count() > 1:
        return f"the import started {threading.active_count() - 1} threads"
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1 and in_a_child(lambda _: canary(), path, CANARY_S).how != "done":
        return f"the import started {threads - 1} threads of a library that does not survive a fork"
    return ""


def _end_all_of(pid: int) -> None:
    for _ in range(2):  # a fork may escape the first
        kill_group(pid)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)  # it may have left its group


def _outcome(path: str, began: float, deadline_s: float, status: Optional[int]) -> Outcome:
    rows, took_s = _rows(path), time.monotonic() - began
    step = next((str(row["name"]) for row in reversed(rows) if row["row"] == "step"), "")
    found = [row for row in rows if row["row"] not in ("step", "ended")]
    ended = next((row for row in rows if row["row"] == "ended"), None)
    if ended is not None:
        why, answer, error = ended.get("why", ""), ended.get("answer"), ended.get("error")
        return Outcome(ended["how"], found, step, why, answer, error, "", took_s)
    if status is None:
        at = _innermost(read_text(f"{path}.stack"))
        why = f"does not end within {deadline_s:.0f} s" + (f", in {at}" if at else "")
        return Outcome("stood", found, step, why, took_s=took_s)
    code = os.waitstatus_to_exitcode(status)
    name = signal_name(max(0, -code))
    why = f"dies of {name}" if name else f"ends its process with exit code {code}"
    why += _last_output(read_text(f"{path}.out")[-TAIL:])
    return Outcome("died", found, step, why, signal=name, took_s=took_s)


def as_child(run: Callable[[Findings], Any], path: str, deadline_s: float) -> NoReturn:
    """Be the child: call `run`, write what came of it, and end."""
    ended: Dict[str, Any] = {"row": "ended", "how": "done"}
    me = os.getpid()
    try:
        with contextlib.suppress(OSError):
            child_program.write("/proc/self/oom_score_adj", "1000")
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        findings = Findings(path, deadline_s)
        stack = os.open(f"{path}.stack", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        faulthandler.dump_traceback_later(max(0.5, deadline_s - 0.5), file=stack)
        try:
            ended["answer"] = run(findings)
        except NotApplicableError as error:
            ended.update(how="skipped", why=str(error))
        except named_object.NamedObjectError as error:
            ended.update(how="given", why=error.sentence)
        except BaseException as error:  # whatever the user's code raises, the parent reports it
            fields = child_program.error_fields(error, 40)
            ended.update(how="raised", error={**fields, "message": fields["message"][:2000]})
        if os.getpid() == me:  # not a process that the user's code forked, and that came back here
            findings._write(ended)  # noqa: SLF001 - the last row is the child's, not the suite's
    finally:
        os._exit(0)


def _last_output(tail: str) -> str:
    """The last line that a child printed, and the frame in which faulthandler saw it die."""
    before, fatal, dump = tail.partition("Fatal Python error: ")
    last = next((line.strip() for line in reversed(before.splitlines()) if line.strip()), "")
    at = _innermost(dump, crashed=True) if fatal else ""
    return (f" in {at}" if at else "") + (f"; its last output: {last[:200]}" if last else "")


def _innermost(dump: str, *, crashed: bool = False) -> str:
    """The innermost frame of a dump outside torch, else of all: `file:line (function)`."""
    frames = frames_of_dump(dump, crashed=crashed)
    own = [item for item in frames if "/torch/" not in item["file"]] or frames
    return "{file}:{line} ({function})".format(**own[-1]) if own else ""


def _rows(path: str) -> List[Dict[str, Any]]:
    rows: List[Dict[str, Any]] = []
    for line in read_text(path).splitlines():
        with contextlib.suppress(ValueError):  # the last may be cut where it died
            rows.append(json.loads(line))
    return rows
