"""The checks of one node for somebody on another node: the task comes on stdin, and each program's findings go home as soon as it has ended."""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any

from trainprobe.checks import BUDGETS, SLOTS
from trainprobe.errors import UsageError
from trainprobe.nodes.answers import Accept
from trainprobe.nodes.telling import Task, Telling
from trainprobe.ready.here import KIND, VALUES, Told, Wanted, run_checks

COMMAND, CELL = "checks-here", "checks"
ACCEPT = Accept(frozenset({KIND, VALUES}), CELL, tells=KIND)
LONGEST_S = 1800.0
MOST = 200


def said(wanted: Wanted) -> bytes:
    """The task as it is told to a node."""
    told = {
        "budget": wanted.budget,
        "slot": wanted.slot,
        "stop_s": wanted.stop_s,
        "interpreter": wanted.interpreter,
        "env": dict(wanted.env),
        "leave_out": list(wanted.leave_out),
        "cwd": wanted.cwd,
    }
    return json.dumps(told).encode() + b"\n"


def checks_here() -> int:
    """Do what stdin says, and print the findings. When whoever asked is gone, everything is ended. Return the exit code."""
    with Telling() as telling:
        task = Task()
        wanted = _wanted(task.read())

        def tell(told: Told) -> None:
            telling.tell(told.kind, told.data, cell=CELL, source=told.source, began=told.began, took_s=told.took_s, outcome=told.outcome, reason=told.reason)

        run_checks(wanted, tell, task.nobody_waits)
    return 0


def _wanted(task: dict[str, Any]) -> Wanted:
    """Raises UsageError for a task that is none."""
    budget, slot, stop_s, env = task.get("budget"), task.get("slot"), task.get("stop_s"), task.get("env")
    texts = [task.get("interpreter"), task.get("cwd"), *(list(env.items()) if isinstance(env, dict) else [None])]
    known = budget in BUDGETS and slot in SLOTS and isinstance(stop_s, (int, float)) and math.isfinite(stop_s) and 0 < stop_s <= LONGEST_S
    if not known or not isinstance(env, dict) or not all(isinstance(text, (str, tuple)) for text in texts):
        raise UsageError("The task on stdin is none of this command's.", "This command is for trainprobe itself.")
    interpreter = str(task["interpreter"])
    leave_out = task.get("leave_out")
    return Wanted(
        budget=str(budget),
        slot=str(slot),
        stop_s=float(stop_s or 0.0),
        interpreter=interpreter if interpreter and os.access(interpreter, os.X_OK) else sys.executable,
        env={str(name): str(value) for name, value in list(env.items())[:MOST] if str(name).startswith("TRAINPROBE_")},
        leave_out=tuple(str(name) for name in leave_out[:MOST]) if isinstance(leave_out, list) else (),
        cwd=str(task["cwd"]),
    )
