"""transformers' Trainer in a plain process that sees several GPUs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.calls import calls_to
from trainprobe.lint.environment import settings
from trainprobe.lint.expressions import Expression, origin
from trainprobe.lint.jobs import STARTS, calls_in_job, job_modules
from trainprobe.lint.mentions import is_launched, is_named
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import method_called
from trainprobe.lint.program import Program

RULE = Rule(
    id="plain-trainer",
    cause="accidental-data-parallel",
    title="A plain Trainer on several GPUs",
    why=(
        "Without a launcher the Trainer uses all visible GPUs through nn.DataParallel, with one"
        " thread each: slow, with a different batch size, and with errors of its own."
    ),
    fix=(
        "Launch it with torchrun --nproc-per-node N or accelerate launch, or make only one GPU"
        " visible."
    ),
    confidence=0.7,
)


TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer")


def find(program: Program) -> Iterator[Finding]:
    for call in calls_to(program, *TRAINERS):
        if calls_in_job(program, call.module, *STARTS):
            continue
        for module in job_modules(program, call.module):
            if is_named(program, [module], "torchrun", "LOCAL_RANK", "local_rank") or is_launched(
                module
            ):
                break
            several = next(
                (
                    setting
                    for setting in settings(program, module)
                    if setting.variable == "CUDA_VISIBLE_DEVICES"
                    and setting.value is not None
                    and _is_several(program, Expression(module, setting.value))
                ),
                None,
            )
            if several is not None:
                message = (
                    f"Line {getattr(several.node, 'lineno', 0)} of {module.path.rpartition('/')[2]}"
                    " makes several GPUs visible to this one process."
                )
                yield RULE.finding(call.module, call.node, message)
                break


def _is_several(program: Program, place: Expression) -> bool:
    """Whether the value names more than one GPU."""
    behind = origin(program, place.module, place.node)
    value = program.value(behind.module, behind.node)
    if isinstance(value, str):
        return "," in value.strip(", ")
    node = behind.node
    if isinstance(node, ast.JoinedStr):
        return any(
            isinstance(part, ast.Constant) and "," in str(part.value) for part in node.values
        )
    if isinstance(node, ast.Call) and method_called(node) == "join" and node.args:
        over = node.args[0]
        if isinstance(over, ast.GeneratorExp | ast.ListComp):
            over = over.generators[0].iter
        items = program.value(behind.module, over)
        return isinstance(items, list | tuple) and len(items) > 1
    return False
