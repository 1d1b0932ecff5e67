"""This rank's part of a sharded value, read as if it were the whole, and operators on it that make all ranks meet."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import flow, sharded
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program

ID = "sharded-value"
CAUSE = "multi-rank-mismatch"
WHY = "A sum, norm or any() of a sharded tensor is a partial result on each rank; reading it as a number gives this rank's part, another on each rank (torch 2.13)."
MEETS = "An operator on a partial result adds the parts of all ranks up. Ranks that come to it wait for those that never do, until the timeout."
FIX = Fix("Call .full_tensor() on all ranks first, outside any rank condition, and read the number of that.")
READS = {"item", "tolist"}
NUMBERS = {"float", "int", "bool"}


def find(program: Program) -> Iterator[Finding]:
    if not sharded.is_used(program):
        return
    for module in program.examined:
        for call in module.of(ast.Call):
            held = _read(program, module, call)
            if held is not None and sharded.kind_of(program, module, held) == "partial":
                says = f"{module.source_of(call)} reads this rank's part of a value that all ranks hold together."
                yield program.finding(ID, CAUSE, module, call, says=says, why=WHY, confidence=0.75, fix=FIX)
        for kind in (ast.If, ast.While, ast.IfExp):
            for node in module.of(kind):
                test: ast.expr = node.test  # type: ignore[attr-defined]
                if sharded.kind_of(program, module, test) == "partial":
                    says = f"Each rank decides {module.source_of(test)} by its own part of the value."
                    yield program.finding(ID, CAUSE, module, test, says=says, why=WHY, confidence=0.75, fix=FIX)
        yield from _alone(program, module)


def _read(program: Program, module: Module, call: ast.Call) -> ast.expr | None:
    """What a call reads as a number."""
    if isinstance(call.func, ast.Attribute):
        return call.func.value if call.func.attr in READS else None
    return call.args[0] if len(call.args) == 1 and program.dotted(module, call.func) in NUMBERS else None


def _alone(program: Program, module: Module) -> Iterator[Finding]:
    """Operators on partial results that only some ranks come to."""
    operators: list[ast.Compare | ast.BinOp] = [*module.of(ast.Compare), *module.of(ast.BinOp)]
    for node in operators:
        if not sharded.meets(program, module, node):
            continue
        guard = next(iter(flow.guards(program, module, node)), None)
        if guard is not None and not (guard.how == "raise" and guard.test.polarity == "some"):
            says = f"{module.source_of(node)} makes all ranks meet, and only some reach it: it depends on `{guard.test.says}` (line {guard.line})."
            yield program.finding(ID, "rank-conditional-collective", module, node, says=says, why=MEETS, confidence=0.75, fix=FIX)


RULE = Rule(ID, CAUSE, "A part of a sharded value read as the whole", WHY, 0.75, find, also=("rank-conditional-collective",))
