"""CUDA used in the workers of a DataLoader."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.devices import touches_cuda
from trainprobe.lint.loaders import has_workers, loaders, run_in_workers, start_method
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.program import Program
from trainprobe.lint.starts import SPAWNING

RULE = Rule(
    id="cuda-in-workers",
    cause="cuda-in-forked-worker",
    title="CUDA in the workers of a DataLoader",
    why=(
        "Workers are forked from a process that has, or will have, a CUDA context; CUDA used in a"
        " worker fails with 'Cannot re-initialize CUDA in forked subprocess'."
    ),
    fix=(
        "Return CPU tensors from the data set and the collator; move the batch to the GPU in the"
        " training loop, with pin_memory=True and non_blocking=True."
    ),
    confidence=0.85,
)


def find(program: Program) -> Iterator[Finding]:
    reported: set[ast.AST] = set()
    for loader in loaders(program):
        if not has_workers(program, loader) or start_method(program, loader) in SPAWNING:
            continue
        for function in run_in_workers(program, loader):
            for call in function.calls:
                if call not in reported and touches_cuda(program, function.module, call):
                    reported.add(call)
                    message = (
                        f"{function.module.source_of(call)} runs in the workers of the DataLoader"
                        f" in line {loader.node.lineno}."
                    )
                    yield RULE.finding(function.module, call, message)
