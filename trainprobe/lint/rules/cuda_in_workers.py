"""CUDA used in the workers of a DataLoader."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.devices import touches_cuda
from trainprobe.lint.loaders import has_workers, loaders, run_in_workers, start_method
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.program import Program
from trainprobe.lint.starts import SPAWNING

ID = "cuda-in-workers"
CAUSE = "cuda-in-forked-worker"
WHY = (
    "Workers are forked from a process that has, or will have, a CUDA context; using CUDA in them fails with 'Cannot re-initialize CUDA in forked subprocess'."
)
FIX = Fix("Return CPU tensors from the data set and the collator; move the batch to the GPU in the training loop, with pin_memory=True and non_blocking=True.")


def find(program: Program) -> Iterator[Finding]:
    told: set[ast.AST] = set()
    for loader in loaders(program):
        if not has_workers(program, loader) or start_method(program, loader) in SPAWNING:
            continue
        for function in run_in_workers(program, loader):
            for call in function.calls:
                if call not in told and touches_cuda(program, function.module, call):
                    told.add(call)
                    says = f"{function.module.source_of(call)} runs in the workers of the DataLoader in line {loader.node.lineno}."
                    yield program.finding(ID, CAUSE, function.module, call, says=says, why=WHY, confidence=0.85, fix=FIX)


RULE = Rule(ID, CAUSE, "CUDA in the workers of a DataLoader", WHY, 0.85, find)
