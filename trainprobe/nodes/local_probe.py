"""Run a built-in probe for a caller on another node, and end it when the caller is gone."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Mapping
from typing import Any

from trainprobe.errors import UsageError
from trainprobe.model.codec import to_json
from trainprobe.model.evidence import Ended
from trainprobe.nodes.remote_end import RecordSender, Task
from trainprobe.system.child import ChildSpec
from trainprobe.system.keeper import Keeper
from trainprobe.system.own_programs import folder_of_probes
from trainprobe.system.working_folders import working_folder

CELL = "probe"
EVENT, ENDED = "probe.event", "probe.ended"
KEY = "probe"
MOST_EVENTS = 4000
MOST_EVENT_BYTES = 2**18
LOOK_AGAIN_S = 0.1
GRACE_S, KILL_S = 0.3, 1.0
TAIL_BYTES = 4000
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def probe_here() -> int:
    """Run the probe that stdin names, print its events, and return the exit code."""
    task = Task()
    with RecordSender() as telling:
        program, env, timeout_s, python = _parse_task(task.read())
        with contextlib.ExitStack() as stack:
            try:
                folder = stack.enter_context(working_folder())
            except OSError as error:
                raise UsageError(
                    f"No working folder can be made on {os.uname().nodename}: {error.strerror}."
                ) from error
            _run(task, telling, (python, program), {**os.environ, **env}, timeout_s, folder)
    return 0


def _parse_task(task: Mapping[str, Any]) -> tuple[str, dict[str, str], float, str]:
    name, env, timeout_s = task.get("program"), task.get("env"), task.get("timeout_s")
    python = task.get("python") or sys.executable
    program = os.path.join(folder_of_probes(), f"{name}.py")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not os.path.isfile(program):
        raise UsageError(
            f"There is no probe {str(name)[:60]!r} here.",
            "The tool must be of the same version on all nodes.",
        )
    if (
        not isinstance(env, dict)
        or not isinstance(timeout_s, (int, float))
        or not 0 < timeout_s < 1e6
        or not isinstance(python, str)
    ):
        raise UsageError("The task on stdin is not valid.")
    return program, {str(key): str(value) for key, value in env.items()}, float(timeout_s), python


def _run(
    task: Task,
    telling: RecordSender,
    argv: tuple[str, str],
    env: Mapping[str, str],
    timeout_s: float,
    folder: str,
) -> None:
    events, out = os.path.join(folder, "events.jsonl"), os.path.join(folder, "out")
    variables = {"TRAINPROBE_EVENTS": events, "TRAINPROBE_DEADLINE_S": f"{timeout_s:g}"}
    until = time.monotonic() + timeout_s
    came = _Events(telling, events)
    late = lost = False
    with Keeper(folder) as keeper:
        keeper.start([ChildSpec(KEY, argv, {**env, **variables}, folder, out, out)])
        while keeper.running() and not late and not lost:
            keeper.wait(LOOK_AGAIN_S)
            came.pass_on()
            late, lost = time.monotonic() > until, task.nobody_waits()
        if keeper.running():
            keeper.stop(GRACE_S, KILL_S)
        came.pass_on()
        ended = keeper.children[KEY].ended or Ended(
            "unkillable", reason=keeper.trouble or "SIGKILL did not end it"
        )
    if late and ended.how != "unkillable":
        ended = Ended(
            "timed_out",
            signal=ended.signal,
            by_us=True,
            phase="run",
            reason=f"it gave no answer within {timeout_s:g} s",
            took_s=timeout_s,
        )
    if not lost:
        telling.tell(
            ENDED,
            {"ended": to_json(ended), "output": _tail(out), "cut": came.cut},
            cell=CELL,
            source=os.path.basename(argv[1]),
        )


class _Events:
    """Passes on each line of an events file once, when it is complete."""

    def __init__(self, telling: RecordSender, path: str) -> None:
        self.cut = False
        self._telling, self._path = telling, path
        self._at = self._count = 0

    def pass_on(self) -> None:
        lines: list[bytes] = []
        with contextlib.suppress(OSError), open(self._path, "rb") as file:
            file.seek(self._at)
            *lines, _ = file.read(4 * 2**20).split(b"\n")
        for line in lines:
            self._at += len(line) + 1
            self._count += 1
            if self._count > MOST_EVENTS or len(line) > MOST_EVENT_BYTES:
                self.cut = True
                continue
            with contextlib.suppress(ValueError, RecursionError):
                event = json.loads(line)
                if isinstance(event, dict):
                    self._telling.tell(EVENT, {"event": event}, cell=CELL, source=KEY)


def _tail(path: str) -> str:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - TAIL_BYTES))
        return file.read(TAIL_BYTES).decode("utf-8", "replace")
    return ""
