"""Training steps: a backward pass in which the ranks of a job meet."""

from __future__ import annotations

import ast

from trainprobe.lint.calls import callers
from trainprobe.lint.jobs import STARTS, WRAPS, calls_in_job
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program


def has_step(program: Program, module: Module, nodes: list[ast.Call]) -> bool:
    """Whether one of these calls is a backward pass in which ranks meet."""
    for node in nodes:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
            name = program.dotted(module, node.func)
            if name == "torch.autograd.backward":
                continue
            return bool(calls_in_job(program, module, *WRAPS, *STARTS)) and _is_followed(
                program, module, node
            )
    return False


def _is_followed(program: Program, module: Module, node: ast.Call) -> bool:
    """Whether an optimizer steps in this function or a caller; else it is a measurement."""
    function = module.function_of(node)
    if function is None:
        return True
    near = [
        function,
        *(
            holder
            for site in callers(program, function)
            if (holder := site.module.function_of(site.node)) is not None
        ),
    ]
    if any(
        isinstance(call.func, ast.Attribute) and call.func.attr in {"step", "zero_grad"}
        for item in near
        for call in item.calls
    ):
        return True
    return not callers(program, function) or len(near) == 1
