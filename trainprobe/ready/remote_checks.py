"""The checks of one node for a caller on another node: the task comes on stdin, and each program's
results go home as soon as it has ended.
"""

from __future__ import annotations

import json
import math
from typing import Any

from trainprobe.checks import BUDGETS, SLOTS
from trainprobe.errors import UsageError
from trainprobe.nodes.answers import Accept
from trainprobe.nodes.remote_end import RecordSender, Task
from trainprobe.ready.local_checks import KIND, VALUES, CheckResult, CheckTask, run_checks

COMMAND, CELL = "checks-here", "checks"
ACCEPT = Accept(frozenset({KIND, VALUES}), CELL, tells=KIND)
LONGEST_S = 1800.0
MOST = 200


def task_line(wanted: CheckTask) -> bytes:
    """The line on stdin that gives a node its task."""
    names = ("budget", "slot", "stop_s", "interpreter", "cwd")
    task = {name: getattr(wanted, name) for name in names}
    task.update(env=dict(wanted.env), leave_out=list(wanted.leave_out))
    return json.dumps(task).encode() + b"\n"


def checks_here() -> int:
    """Run the task on stdin and print the results. Everything ends when the caller is gone. Return
    the exit code.
    """
    with RecordSender() as telling:
        task = Task()
        wanted = _wanted(task.read())

        def tell(result: CheckResult) -> None:
            telling.tell(
                result.kind,
                result.data,
                cell=CELL,
                source=result.source,
                began=result.began,
                took_s=result.took_s,
                outcome=result.outcome,
                reason=result.reason,
            )

        run_checks(wanted, tell, task.nobody_waits)
    return 0


def _wanted(task: dict[str, Any]) -> CheckTask:
    """Raises UsageError for an invalid task."""
    budget, slot = task.get("budget"), task.get("slot")
    stop_s, env = task.get("stop_s"), task.get("env")
    texts = [
        task.get("interpreter"),
        task.get("cwd"),
        *(list(env.items()) if isinstance(env, dict) else [None]),
    ]
    known = (
        budget in BUDGETS
        and slot in SLOTS
        and isinstance(stop_s, (int, float))
        and math.isfinite(stop_s)
        and 0 < stop_s <= LONGEST_S
    )
    if (
        not known
        or not isinstance(env, dict)
        or not all(isinstance(text, (str, tuple)) for text in texts)
    ):
        raise UsageError(
            "The task on stdin is not valid.", "This command is for trainprobe itself."
        )
    leave_out = task.get("leave_out")
    return CheckTask(
        budget=str(budget),
        slot=str(slot),
        stop_s=float(stop_s or 0.0),
        interpreter=str(task["interpreter"]),
        env={
            str(name): str(value)
            for name, value in list(env.items())[:MOST]
            if str(name).startswith("TRAINPROBE_")
        },
        leave_out=(
            tuple(str(name) for name in leave_out[:MOST]) if isinstance(leave_out, list) else ()
        ),
        cwd=str(task["cwd"]),
    )
