"""Forks children that each try one operation, and watches them with a deadline."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import re
import resource
import signal
import time
import traceback
from typing import Any, Callable, Dict, List, Optional, Sequence

from _fork._operations import Operation

TICK_S = 0.02
MOST_S = 20.0  # for a child that computes all the time


def fork(folder: str, key: str, run: Callable[[], Any]) -> int:
    """Fork a child that runs this and writes what became of it to FOLDER/KEY.json; return its pid."""
    stack = open(f"{folder}/{key}.stack", "w", encoding="utf-8")  # noqa: SIM115 - the child's, until its end
    pid = os.fork()
    if pid:
        stack.close()
        return pid
    out: Dict[str, Any] = {"outcome": "passed"}
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.enable(stack, all_threads=True)
        began = time.monotonic()
        out["value"] = run()
        out["took_s"] = round(time.monotonic() - began, 4)
    except BaseException as error:  # whatever it raises is the answer
        rows = [{"file": one.filename, "line": one.lineno, "function": one.name} for one in traceback.extract_tb(error.__traceback__)[-30:]]
        out.update(outcome="raised", type=type(error).__name__, message=str(error)[:2000], frames=rows)
    with contextlib.suppress(BaseException):
        with open(f"{folder}/{key}.tmp", "w", encoding="utf-8") as file:
            json.dump(out, file, default=repr)
        os.rename(f"{folder}/{key}.tmp", f"{folder}/{key}.json")
        code = 0
    os._exit(code)


def attempt(folder: str, operations: Sequence[Operation], prefix: str = "") -> List[Dict[str, Any]]:
    """Try all of them at the same time, each in a forked child. Rows: op, library, outcome (passed|raised|hangs|died|slow), took_s, frames."""
    watched = []
    for place, operation in enumerate(operations):
        key = f"{prefix}{place}"
        watched.append(Watched(folder, key, operation, fork(folder, key, operation.run)))
    while any(one.row is None for one in watched):
        time.sleep(TICK_S)
        for one in watched:
            if one.row is None:
                one.look()
    return [one.row for one in watched if one.row is not None]


class Watched:
    """One child. It hangs when it has slept for its operation's `quiet_s` without using the CPU: one that only waits for a CPU does not sleep."""

    def __init__(self, folder: str, key: str, operation: Operation, pid: int) -> None:
        self.folder, self.key, self.operation, self.pid = folder, key, operation, pid
        self.began = self.moved_at = time.monotonic()
        self.ticks = -1
        self.row: Optional[Dict[str, Any]] = None

    def look(self) -> None:
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        now = time.monotonic()
        if ended:
            self.row = self._told(status)
            return
        text = _read(f"/proc/{self.pid}/stat").rpartition(")")[2].split()
        state, ticks = (text[0], int(text[11]) + int(text[12])) if len(text) > 12 else ("?", self.ticks)
        if state != "S" or ticks != self.ticks:
            self.moved_at, self.ticks = now, ticks
        if now - self.moved_at >= self.operation.quiet_s or now - self.began >= MOST_S:
            self.row = {**self._base("hangs" if now - self.began < MOST_S else "slow"), **self._end()}

    def _base(self, outcome: str) -> Dict[str, Any]:
        return {
            "op": self.operation.name,
            "library": self.operation.library,
            "outcome": outcome,
            "took_s": round(time.monotonic() - self.began, 3),
            "pid": self.pid,
        }

    def _told(self, status: int) -> Dict[str, Any]:
        text = _read(f"{self.folder}/{self.key}.json")
        if text:
            return {**self._base("passed"), **json.loads(text)}
        code = os.waitstatus_to_exitcode(status)
        return {**self._base("died"), "signal": -code if code < 0 else None, "exit_code": code if code >= 0 else None, "frames": self._stack()}

    def _end(self) -> Dict[str, Any]:
        """Ask for its stack by SIGABRT, to which faulthandler answers without any lock, and end it."""
        threads = len(_listed(f"/proc/{self.pid}/task"))
        waits = _read(f"/proc/{self.pid}/wchan")
        for sent in (signal.SIGABRT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sent)
            until = time.monotonic() + 1.0
            while time.monotonic() < until:
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    return {"threads": threads, "waits": waits, "frames": self._stack()}
                time.sleep(TICK_S)
        return {"threads": threads, "waits": waits, "frames": self._stack()}

    def _stack(self) -> List[Dict[str, Any]]:
        """The frames of the child's one thread, outermost first."""
        found = re.findall(r'File "(.*)", line (\d+) in (\S+)', _read(f"{self.folder}/{self.key}.stack"))
        return [{"file": file, "line": int(line), "function": name} for file, line, name in reversed(found)]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _listed(path: str) -> List[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
