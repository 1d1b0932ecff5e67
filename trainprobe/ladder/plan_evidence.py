"""The plan, written into the case before anything starts: what was asked for, on what, and the
script as text.
"""

from __future__ import annotations

from typing import Any

from trainprobe import __version__
from trainprobe.case import Case
from trainprobe.collect.look_results import record
from trainprobe.collect.members import host_name, host_subject
from trainprobe.ladder.plan import Plan
from trainprobe.model.codec import to_json
from trainprobe.model.evidence import LookOutcome

_OF_SCRIPT = "path imports optional local distributed spawns group_timeout_s"
_OF_INTERPRETER = "path version torch cuda reason chosen_by note"
_OF_PLAN = """
    nproc nodes gpus_requested gpus backend device form argv cwd imports only skip timeout_s ranks
    rows ablate knobs dataset collate batch_size workers model sample bench_steps fuzz seed planned
    probe_dirs config notes
"""


def write_plan(plan: Plan, case: Case) -> None:
    """Keep the plan, the GPUs that were seen, and what the script says of itself."""
    case.add("plan", source="ladder", data=plan_row(plan))
    if plan.gpus_seen is not None:
        record(case, "gpus", plan.gpus_seen, subject=host_subject(), cell="", source="NVML")
    if plan.script is not None:
        script = plan.script
        fault = script.syntax_error
        data = {**_fields(script, _OF_SCRIPT), "syntax_error": to_json(fault) if fault else None}
        outcome: LookOutcome = "unavailable" if script.reason else "ok"
        case.add("script", source="ladder", outcome=outcome, reason=script.reason, data=data)


def plan_row(plan: Plan) -> dict[str, Any]:
    """The data of the `plan` evidence."""
    return {
        "command": "diagnose",
        "world_size": plan.world,
        "reached_by": plan.way.by if plan.way is not None else "",
        "script": plan.script.path if plan.script else None,
        "interpreter": _fields(plan.interpreter, _OF_INTERPRETER),
        "rungs": [
            {"rung": rung.spec.rung, "probe": rung.spec.name, "question": rung.spec.question}
            for rung in plan.rungs
        ],
        **_fields(plan, _OF_PLAN),
        "tool_version": __version__,
        "host": host_name(),
    }


def _fields(value: Any, names: str) -> dict[str, Any]:
    return {name: to_json(getattr(value, name)) for name in names.split()}
