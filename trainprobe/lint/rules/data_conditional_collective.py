"""A collective under a condition that each rank asks of its own tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from trainprobe.lint import flow
from trainprobe.lint.jobs import DDP, calls_in_job, runs_on_ranks
from trainprobe.lint.missed import BACKWARD, missed
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module, last_name, method_called
from trainprobe.lint.program import Program
from trainprobe.lint.ranks import EXCHANGES
from trainprobe.lint.reached import reached_by_call

RULE = Rule(
    id="data-conditional-collective",
    cause="rank-conditional-collective",
    title="a collective under a condition of each rank's own tensors",
    why=(
        "Each rank has rows of its own, so its loss is nan, or its sequences are finished, when"
        " those of the others are not. Ranks that answer otherwise wait in the collective until the"
        " timeout."
    ),
    fix="Let the ranks agree first: all_reduce the answer, and let all of them act on it.",
    confidence=0.4,
)
"""A hint: whether the ranks agreed elsewhere cannot always be seen."""

FINITE = {"isnan", "isinf", "isfinite"}
ASKS = FINITE | {"any", "all", "equal", "allclose"}
TAKES = {"item", "tolist"}
STEP_SKIPPED = 0.6
"""The confidence where a rank whose loss is not finite leaves out the backward pass of DDP."""


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        for node in module.of(ast.If):
            names = _asked(program, module, node.test)
            if (
                not names
                or flow.guards(program, module, node)
                or not runs_on_ranks(program, module)
                or _agreed(program, module, node, names)
            ):
                continue
            way = missed(program, module, node)
            if way is not None:
                message = (
                    f"Each rank asks its own tensors `{module.source_of(node.test)}`, and"
                    f" {way.name} (line {way.line}) needs all ranks."
                )
                skips = way.name == BACKWARD and _asks_if_finite(node.test)
                sure = STEP_SKIPPED if skips and calls_in_job(program, module, DDP) else None
                found = RULE.finding(module, node, message, confidence=sure)
                yield replace(found, reaches=(module.path, way.line))


def _asks_if_finite(test: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Call) and last_name(node.func) in FINITE for node in ast.walk(test)
    )


def _asked(program: Program, module: Module, test: ast.expr) -> set[str]:
    """The names of this function whose tensors a condition asks."""
    found: set[str] = set()
    for call in (node for node in ast.walk(test) if isinstance(node, ast.Call)):
        name = program.dotted(module, call.func)
        asks = name.startswith(("torch.", "math.", "numpy.")) and last_name(call.func) in ASKS
        if asks and call.args:
            parts = call.args[:1]
        elif method_called(call) in TAKES | FINITE and isinstance(call.func, ast.Attribute):
            parts = [call.func.value]
        else:
            continue
        found |= {
            part.id for each in parts for part in ast.walk(each) if isinstance(part, ast.Name)
        }
    return {name for name in found if name not in {"torch", "math"}}


def _agreed(program: Program, module: Module, node: ast.If, names: set[str]) -> bool:
    """Whether the ranks met about one of these names before, or one comes from where they meet."""
    holder = module.function_of(node)
    calls = holder.calls if holder is not None else module.top_calls
    for call in calls:
        reached = reached_by_call(program, module, call)
        named = EXCHANGES.search(last_name(call.func)) is not None
        # a forward pass meets about parameters and buffers, not about what it returns
        if call.lineno > node.lineno or not (
            named or any(not each.collective.name.startswith("model.") for each in reached)
        ):
            continue
        statement = module.statement_of(call)
        about = {part.id for part in ast.walk(statement) if isinstance(part, ast.Name)}
        if about & names and not isinstance(statement, ast.If | ast.For | ast.While | ast.With):
            return True
    return False
