"""Forks children that each try one operation, and watches them with a deadline."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from typing import Any, Dict, List, Optional, Sequence

from _fork_safety.operations import Operation
from _shared import child_program
from _shared.child_processes import fork, frames_of_dump, kernel_function, wait_status
from _shared.proc import count_entries, read_text, stat_fields

TICK_S = 0.02
MOST_S = 20.0  # for a child that computes all the time


def attempt(folder: str, operations: Sequence[Operation], prefix: str = "") -> List[Dict[str, Any]]:
    """Try all operations at once in forked children. Rows: op, library, outcome, took_s, frames."""
    watched = [Watched(folder, f"{prefix}{i}", item) for i, item in enumerate(operations)]
    while any(item.row is None for item in watched):
        time.sleep(TICK_S)
        for item in watched:
            if item.row is None:
                item.look()
    return [item.row for item in watched if item.row is not None]


class Watched:
    """One child. It hangs when it has slept for its operation's `quiet_s` without using the CPU."""

    def __init__(self, folder: str, key: str, operation: Operation) -> None:
        self.folder, self.key, self.operation = folder, key, operation
        self.pid = fork(self._try)
        self.began = self.moved_at = time.monotonic()
        self.ticks = -1
        self.row: Optional[Dict[str, Any]] = None

    def _try(self) -> None:
        """The child's part."""
        child_program.prepare(self.folder, self.key)
        out: Dict[str, Any] = {"outcome": "passed"}
        try:
            began = time.monotonic()
            out["value"] = self.operation.run()
            out["took_s"] = round(time.monotonic() - began, 4)
        except BaseException as error:  # whatever it raises is the answer
            out.update(child_program.error_fields(error), outcome="raised")
        child_program.answer(self.folder, self.key, out)

    def look(self) -> None:
        status = wait_status(self.pid, 0.0)
        now = time.monotonic()
        if status is not None:
            self.row = self._ended(status)
            return
        fields = stat_fields(self.pid)
        ticks = int(fields[11]) + int(fields[12]) if len(fields) > 12 else self.ticks
        if not fields or fields[0] != "S" or ticks != self.ticks:
            self.moved_at, self.ticks = now, ticks
        if now - self.moved_at >= self.operation.quiet_s or now - self.began >= MOST_S:
            base = self._base("hangs" if now - self.began < MOST_S else "slow")
            self.row = {**base, **self._end()}

    def _base(self, outcome: str) -> Dict[str, Any]:
        return {
            "op": self.operation.name,
            "library": self.operation.library,
            "outcome": outcome,
            "took_s": round(time.monotonic() - self.began, 3),
            "pid": self.pid,
        }

    def _ended(self, status: int) -> Dict[str, Any]:
        text = read_text(f"{self.folder}/{self.key}.json")
        if text:
            return {**self._base("passed"), **json.loads(text)}
        code = os.waitstatus_to_exitcode(status)
        return {
            **self._base("died"),
            "signal": -code if code < 0 else None,
            "exit_code": code if code >= 0 else None,
            "frames": self._frames(),
        }

    def _end(self) -> Dict[str, Any]:
        """Ask for its stack by SIGABRT, which faulthandler answers without any lock, and end it."""
        found: Dict[str, Any] = {
            "threads": count_entries(f"/proc/{self.pid}/task"),
            "waits": kernel_function(self.pid),
        }
        for number in (signal.SIGABRT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
            if wait_status(self.pid, time.monotonic() + 1.0) is not None:
                break
        return {**found, "frames": self._frames()}

    def _frames(self) -> List[Dict[str, Any]]:
        return frames_of_dump(read_text(f"{self.folder}/{self.key}.stack"))
