"""The tool's side of the keeper: start it, give it orders, read its reports."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import subprocess
import sys
import time
from types import TracebackType
from typing import Any, Dict, List, Optional, Sequence, Type

from trainprobe.errors import Fault
from trainprobe.model.evidence import Ended
from trainprobe.system.anonymous_files import anonymous_file
from trainprobe.system.child import Child, ChildSpec, Descendant, ended_from_status
from trainprobe.system.proc import read_stat
from trainprobe.system.tree import kill_below
from trainprobe.system.working_folders import working_folder_of

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keeper_process.py")
HEARD_S = 10.0  # how long the keeper may take to read a command before it counts as broken
CLOSE_S = 5.0

_still_there: List[
    subprocess.Popen[bytes]
] = []  # keepers that stay with what cannot be killed; they are collected later


class Keeper:
    """Starts children and sees everything below them; a context manager, one per cell.

    When it is closed, or this process ends in whatever way, every process below it is killed.
    Where this process ends without closing it, it also removes the working folder `folder` is in.
    `trouble` holds one sentence when the keeper itself broke. `close_s` is how long closing it may
    take where something below cannot be killed.
    """

    def __init__(self, folder: str, close_s: float = CLOSE_S) -> None:
        self._close_s = close_s
        self.children: Dict[str, Child] = {}
        self.descendants: Dict[int, Descendant] = {}
        self.unkillable: Dict[int, str] = {}
        self.trouble = ""
        self._stops = 0
        self._lost = False  # the keeper ended by itself
        self._read_bytes, self._torn = 0, b""
        self._closing = self._closed = False
        self._status = anonymous_file("keeper-status", folder)
        self._errors = anonymous_file("keeper-errors", folder)
        commands, self._commands = os.pipe()
        self._bell, rung = os.pipe()
        try:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", "-E", PROGRAM),
                    *(str(self._status.fileno()), str(rung), working_folder_of(folder)),
                ],
                stdin=commands,
                stdout=self._errors,
                stderr=self._errors,
                pass_fds=(self._status.fileno(), rung),
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            raise Fault(
                f"The keeper of child processes cannot be started: {error}.",
                f"Try: {sys.executable} -V",
            ) from error
        finally:
            os.close(commands)
            os.close(rung)
        os.set_blocking(self._bell, False)
        os.set_blocking(self._commands, False)

    def __enter__(self) -> Keeper:  # noqa: PYI034 - Self is newer than Python 3.9
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def start(self, specs: Sequence[ChildSpec]) -> None:
        """Start `specs` and return when each has started or failed (`how` is not_started)."""
        for spec in specs:
            if spec.key in self.children:
                raise Fault(f"Two children are called {spec.key!r}.", "Give each its own key.")
            self.children[spec.key] = Child(spec)
        for spec in specs:
            reason = _not_sendable(spec)
            if reason:
                self.children[spec.key].ended = Ended("not_started", reason=reason, at=time.time())
                continue
            self._tell(
                do="start",
                key=spec.key,
                argv=list(spec.argv),
                env=dict(spec.env),
                cwd=spec.cwd,
                stdout=spec.stdout,
                stderr=spec.stderr,
                cap_bytes=spec.output_cap_bytes,
            )
        until = time.monotonic() + HEARD_S
        while any(
            self.children[spec.key].pid is None and self.children[spec.key].ended is None
            for spec in specs
        ):
            if time.monotonic() > until:  # an exec from a dead file system; it may still come
                self.trouble = f"Not all children were started within {HEARD_S:g} s."
                break
            self.wait(0.5)

    def poll(self) -> None:
        """Read what the keeper saw since the last call. Never blocks."""
        if self._closed:
            return
        with contextlib.suppress(OSError):  # the bell has rung for what we read now
            while len(os.read(self._bell, 65536)) == 65536:
                pass
        # asked first, so that the last lines are read after the end
        gone = self._process.poll() is not None
        while True:
            block = os.pread(self._status.fileno(), 2**20, self._read_bytes)
            if not block:
                break
            self._read_bytes += len(block)
            *lines, self._torn = (self._torn + block).split(b"\n")
            for line in lines:
                self._hear(json.loads(line))
        if gone and not self._closing:
            self._lose_keeper()

    def wait(self, timeout_s: float) -> None:
        """Sleep until the keeper has news, at most `timeout_s`, then poll."""
        waiting = select.poll()
        waiting.register(self._bell, select.POLLIN)
        waiting.poll(max(0, int(timeout_s * 1000)))
        self.poll()

    def running(self) -> bool:
        """Say whether a child that we started still runs."""
        return any(
            child.pid is not None and child.ended is None for child in self.children.values()
        )

    def alive_pids(self) -> List[int]:
        """Return the pids of children and descendants that are alive as far as we know."""
        own = [
            child.pid
            for child in self.children.values()
            if child.pid is not None and child.ended is None
        ]
        return own + [each.pid for each in self.descendants.values() if each.ended is None]

    def stop(self, grace_s: float = 2.0, kill_s: float = 3.0) -> None:
        """Send SIGTERM to everything below, after `grace_s` SIGKILL; return when all are gone or
        `kill_s` more have passed.

        What is left then is marked `unkillable`.
        """
        stops = self._stops
        self._tell(do="stop", grace_s=grace_s, kill_s=kill_s)
        until = time.monotonic() + grace_s + kill_s + HEARD_S
        while self._stops == stops and not self._lost:
            if time.monotonic() > until:
                self.trouble = "The keeper did not answer a request to stop."
                break
            self.wait(0.5)

    def close(self) -> None:
        """Kill what is left below and let the keeper go. What it saw stays readable."""
        if self._closed:
            return
        self.poll()
        self._closing = True
        self._tell(do="leave")  # the working folder is still in use
        os.close(self._commands)
        try:
            self._process.wait(self._close_s)
        except subprocess.TimeoutExpired:  # it holds on to something unkillable, and goes by itself
            _still_there[:] = [
                *(process for process in _still_there if process.poll() is None),
                self._process,
            ]
            self.trouble = (
                self.trouble
                or "A process below cannot be killed; the keeper stays with it for some seconds."
            )
        self.poll()
        self._closed = True
        os.close(self._bell)
        self._status.close()
        self._errors.close()

    # --- the pipe and the status file

    def _tell(self, **command: Any) -> None:
        unsent = memoryview(json.dumps(command).encode() + b"\n")
        waiting = select.poll()
        waiting.register(self._commands, select.POLLOUT)
        while unsent:
            if not waiting.poll(int(HEARD_S * 1000)):
                self.trouble = f"The keeper did not read a command within {HEARD_S:g} s."
                return
            try:
                unsent = unsent[os.write(self._commands, unsent) :]
            except BlockingIOError:
                continue
            except OSError:  # it is gone: that says why
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(CLOSE_S)
                self.poll()
                return

    def _hear(self, report: Dict[str, Any]) -> None:
        event = report["event"]
        if event == "started":
            child = self.children[report["key"]]
            child.pid, child.started_ticks, child.started_at = (
                report["pid"],
                report["ticks"],
                report["at"],
            )
        elif event == "not_started":
            self.children[report["key"]].ended = Ended(
                "not_started", reason=report["reason"], at=report["at"]
            )
        elif event == "ended":
            self.children[report["key"]].ended = _ended(report)
        elif event == "seen":
            self.descendants[report["pid"]] = Descendant(
                report["pid"],
                report["ppid"],
                report["ticks"],
                report["cmdline"],
                report["rank"],
                seen_at=report["at"],
            )
        elif event == "changed":
            self._change(report["pid"], cmdline=report["cmdline"], rank=report["rank"])
        elif event == "gone":
            self._change(report["pid"], ended=_ended(report))
        elif event == "cut":
            self.children[report["key"]].cut_bytes += report["cut_bytes"]
        elif event == "left":
            self._leave(report)
        elif event == "stopped":
            self._stops += 1
        elif event == "fault":
            self.trouble = f"The keeper broke: {report['reason']} (line {report['line']})."

    def _change(self, pid: int, **fields: Any) -> None:
        if pid in self.descendants:
            self.descendants[pid] = dataclasses.replace(self.descendants[pid], **fields)

    def _leave(self, report: Dict[str, Any]) -> None:
        where = f" in {report['wchan']}" if report["wchan"] not in ("", "0") else ""
        ended = Ended(
            "unkillable",
            reason=f"SIGKILL did not end it; it is in state {report['state']}{where}",
            at=report["at"],
            seen_by="proc",
        )
        self.unkillable[report["pid"]] = ended.reason
        if report["key"]:
            self.children[report["key"]].ended = ended
        else:
            self._change(report["pid"], ended=ended)

    def _lose_keeper(self) -> None:
        """Kill all that we know: our children died with the keeper, their children may not."""
        self._lost = True
        text = (
            os.pread(self._errors.fileno(), 4000, 0)
            .decode("utf-8", "replace")
            .strip()
            .rpartition("\n")[2]
        )
        self.trouble = (
            self.trouble
            or f"The keeper of child processes ended by itself ({self._process.returncode}). {text}".strip()  # noqa: E501
        )
        started = {
            child.pid: child.started_ticks
            for child in self.children.values()
            if child.pid is not None and child.ended is None
        }
        started.update(
            {
                pid: each.started_ticks
                for pid, each in self.descendants.items()
                if each.ended is None
            }
        )
        stats = {pid: read_stat(pid) for pid in started}
        kill_below(
            pid
            for pid, found in stats.items()
            if found is not None and found.started_ticks == started[pid]
        )
        reason = "the keeper was gone, so nobody saw how it ended"
        unseen = Ended("exited", reason=reason, at=time.time(), seen_by="nobody")
        for child in self.children.values():
            child.ended = child.ended or (
                unseen
                if child.pid is not None
                else Ended("not_started", reason=self.trouble, at=time.time())
            )
        for pid, each in self.descendants.items():
            if each.ended is None:
                self._change(pid, ended=unseen)


def _ended(report: Dict[str, Any]) -> Ended:
    known = {
        "by_us": report["by_us"],
        "at": report["at"],
        "took_s": report["took_s"],
        "seen_by": report["seen_by"],
    }
    if report["status"] is None:
        return Ended(
            "exited", reason="its parent collected its exit status before we could", **known
        )
    return ended_from_status(report["status"], **known)


def _not_sendable(spec: ChildSpec) -> str:
    if not spec.argv:
        return "there is no program to start"
    texts = [*spec.argv, *spec.env.keys(), *spec.env.values(), spec.cwd, spec.stdout, spec.stderr]
    if any("\0" in text for text in texts):
        return "an argument or environment variable holds a zero byte"
    return ""
