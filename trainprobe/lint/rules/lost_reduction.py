"""A collective that works on a temporary tensor, so that its result is lost."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.calls import calls_to
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import last_name
from trainprobe.lint.program import Program
from trainprobe.lint.values import argument

RULE = Rule(
    id="lost-reduction",
    cause="multi-rank-mismatch",
    title="A collective whose result is thrown away",
    why=(
        "It changes the tensor that it is given, in place. That tensor is a new one here, which"
        " nothing refers to afterwards: each rank goes on with its own value."
    ),
    fix="Give the new tensor a name, hand that to the collective, and go on with it.",
    confidence=0.85,
)

IN_PLACE = "torch.distributed.all_reduce"
MAKES = {"clone", "mean", "sum", "norm", "stack", "cat", "tensor", "max", "min"}
KEEPS = {"cuda", "to", "float", "double", "contiguous", "detach", "view", "reshape", "unsqueeze"}
"""Methods that hand on a tensor that is a new one before."""


def find(program: Program) -> Iterator[Finding]:
    for call in calls_to(program, IN_PLACE):
        given = argument(call.node, "tensor", 0)
        if given is None or not _is_new(given) or _is_constant(given):
            continue
        tensor = call.module.source_of(given)
        message = f"all_reduce changes {tensor}, a new tensor that nothing keeps."
        yield RULE.finding(call.module, call.node, message)


def _is_new(node: ast.expr) -> bool:
    match node:
        case ast.BinOp() | ast.UnaryOp():
            return True
        case ast.Call(func=func) if last_name(func) in MAKES:
            return True
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in KEEPS:
            return _is_new(inner)
    return False


def _is_constant(node: ast.expr) -> bool:
    """Whether it holds nothing that somebody wants: `torch.tensor(1).cuda()`, by which ranks wait
    for each other or warm their connections up.
    """
    return not any(
        isinstance(part, ast.Name) and part.id not in {"torch", "device", "rank", "local_rank"}
        for part in ast.walk(node)
        if not isinstance(part, ast.keyword)
    )
