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


def write_plan(plan: Plan, case: Case) -> None:
    """Keep the plan, the GPUs that were seen, and what the script says of itself."""
    case.add("plan", source="ladder", data=plan_row(plan))
    if plan.gpus_seen is not None:
        record(case, "gpus", plan.gpus_seen, subject=host_subject(), cell="", source="NVML")
    if plan.script is not None:
        script = plan.script
        fault = script.syntax_error
        case.add(
            "script",
            source="ladder",
            outcome="unavailable" if script.reason else "ok",
            reason=script.reason,
            data={
                "path": script.path,
                "imports": list(script.imports),
                "optional": list(script.optional),
                "local": list(script.local),
                "distributed": script.distributed,
                "spawns": script.spawns,
                "group_timeout_s": script.group_timeout_s,
                "syntax_error": to_json(fault) if fault else None,
            },
        )


def plan_row(plan: Plan) -> dict[str, Any]:
    """The data of the `plan` evidence."""
    interpreter = plan.interpreter
    return {
        "command": "diagnose",
        "nproc": plan.nproc,
        "world_size": plan.world,
        "nodes": list(plan.nodes),
        "reached_by": plan.way.by if plan.way is not None else "",
        "gpus_requested": plan.gpus_requested,
        "gpus": plan.gpus,
        "backend": plan.backend,
        "device": plan.device,
        "form": plan.form,
        "script": plan.script.path if plan.script else None,
        "argv": list(plan.argv),
        "cwd": plan.cwd,
        "imports": list(plan.imports),
        "interpreter": {
            "path": interpreter.path,
            "version": interpreter.version,
            "torch": interpreter.torch,
            "cuda": interpreter.cuda,
            "reason": interpreter.reason,
            "chosen_by": interpreter.chosen_by,
            "note": interpreter.note,
        },
        "rungs": [
            {"rung": rung.spec.rung, "probe": rung.spec.name, "question": rung.spec.question}
            for rung in plan.rungs
        ],
        "only": list(plan.only),
        "skip": list(plan.skip),
        "timeout_s": plan.timeout_s,
        "ranks": list(plan.ranks),
        "rows": list(plan.rows),
        "ablate": plan.ablate,
        "knobs": [list(knob) for knob in plan.knobs],
        "dataset": plan.dataset,
        "collate": plan.collate,
        "batch_size": plan.batch_size,
        "workers": list(plan.workers),
        "model": plan.model,
        "sample": plan.sample,
        "bench_steps": plan.bench_steps,
        "fuzz": plan.fuzz,
        "seed": plan.seed,
        "planned": dict(plan.planned),
        "probe_dirs": list(plan.probe_dirs),
        "config": plan.config,
        "notes": list(plan.notes),
        "tool_version": __version__,
        "host": host_name(),
    }
