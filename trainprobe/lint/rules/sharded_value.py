"""A rank's part of a sharded value read as the whole, and operators that all ranks must call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import flow, sharded
from trainprobe.lint.jobs import in_jobs_of
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.wrappers import is_whole_here

RULE = Rule(
    id="sharded-value",
    cause="multi-rank-mismatch",
    title="A part of a sharded value read as the whole",
    why=(
        "A sum, norm or any() of a sharded tensor is a partial result on each rank; reading it as a"
        " number gives this rank's part, which differs between ranks (torch 2.13)."
    ),
    fix=(
        "Call .full_tensor() on all ranks first, outside any rank condition, and read the number"
        " from its result."
    ),
    confidence=0.75,
    also=("rank-conditional-collective",),
)


MEETS = (
    "An operator on a partial result is a collective: it adds up the parts of all ranks. Ranks that"
    " reach it wait for the others until the timeout."
)

READS = {"item", "tolist"}
NUMBERS = {"float", "int", "bool"}


def find(program: Program) -> Iterator[Finding]:
    users = [module for module in program.modules.values() if sharded.is_used_by([module])]
    concerned = in_jobs_of(program, users) if users else ()
    for module in program.examined:
        if module not in concerned:
            continue
        for call in module.of(ast.Call):
            holder = _read(program, module, call)
            if (
                holder is not None
                and sharded.kind_of(program, module, holder) == "partial"
                and not is_whole_here(module, call)
            ):
                message = (
                    f"{module.source_of(call)} reads only this rank's part of a sharded value."
                )
                yield RULE.finding(module, call, message)
        for kind in (ast.If, ast.While, ast.IfExp):
            for node in module.of(kind):
                test: ast.expr = node.test  # type: ignore[attr-defined]
                if sharded.kind_of(program, module, test) == "partial":
                    message = (
                        f"Each rank decides {module.source_of(test)} by its own part of the value."
                    )
                    yield RULE.finding(module, test, message)
        yield from _alone(program, module)


def _read(program: Program, module: Module, call: ast.Call) -> ast.expr | None:
    """What a call reads as a number."""
    if isinstance(call.func, ast.Attribute):
        return call.func.value if call.func.attr in READS else None
    return (
        call.args[0]
        if len(call.args) == 1 and program.dotted(module, call.func) in NUMBERS
        else None
    )


def _alone(program: Program, module: Module) -> Iterator[Finding]:
    """Operators on partial results that only some ranks come to."""
    operators: list[ast.Compare | ast.BinOp] = [*module.of(ast.Compare), *module.of(ast.BinOp)]
    for node in operators:
        if not sharded.meets(program, module, node):
            continue
        guard = next(iter(flow.guards(program, module, node)), None)
        if guard is not None and not (guard.how == "raise" and guard.test.polarity == "some"):
            message = (
                f"{module.source_of(node)} is a collective that only some ranks reach: it depends"
                f" on `{guard.test.says}` (line {guard.line})."
            )
            yield RULE.finding(
                module, node, message, cause="rank-conditional-collective", why=MEETS
            )
