"""transformers' Trainer in a plain process that sees several GPUs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.environment import settings
from trainprobe.lint.mentions import is_launched, is_named
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import STARTS, Place, among, calls_of, job, origin

ID = "plain-trainer"
CAUSE = "accidental-data-parallel"
WHY = "Without a launcher the Trainer spreads over all visible GPUs by threads (nn.DataParallel): slow, with another batch size, and with faults that other jobs do not have."
FIX = Fix("Start with torchrun --nproc-per-node N or accelerate launch; or leave one GPU visible.")
TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer")


def find(program: Program) -> Iterator[Finding]:
    for call in calls_of(program, *TRAINERS):
        if among(program, call.module, *STARTS):
            continue
        for module in job(program, call.module):
            if is_named(program, [module], "torchrun", "LOCAL_RANK", "local_rank") or is_launched(module):
                break
            several = next(
                (
                    one
                    for one in settings(program, module)
                    if one.variable == "CUDA_VISIBLE_DEVICES" and one.value is not None and _is_several(program, Place(module, one.value))
                ),
                None,
            )
            if several is not None:
                says = f"Line {getattr(several.node, 'lineno', 0)} of {module.path.rpartition('/')[2]} makes several GPUs visible to this one process."
                yield program.finding(ID, CAUSE, call.module, call.node, says=says, why=WHY, confidence=0.7, fix=FIX)
                break


def _is_several(program: Program, place: Place) -> bool:
    """Whether the value names more than one GPU."""
    behind = origin(program, place.module, place.node)
    value = program.value(behind.module, behind.node)
    if isinstance(value, str):
        return "," in value.strip(", ")
    node = behind.node
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(part, ast.Constant) and "," in str(part.value) for part in node.values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join" and node.args:
        over = node.args[0]
        if isinstance(over, ast.GeneratorExp | ast.ListComp):
            over = over.generators[0].iter
        items = program.value(behind.module, over)
        return isinstance(items, list | tuple) and len(items) > 1
    return False


RULE = Rule(ID, CAUSE, "A plain Trainer on several GPUs", WHY, 0.7, find)
