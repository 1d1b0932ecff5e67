"""A collective under a condition that each rank asks of its own clock."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from trainprobe.lint import flow
from trainprobe.lint.flow import LOOPS
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import FUNCTIONS, Module, last_name
from trainprobe.lint.program import Program
from trainprobe.lint.reached import ReachedCollective, reached_by_call
from trainprobe.lint.steps import has_step

RULE = Rule(
    id="clock-conditional-collective",
    cause="rank-conditional-collective",
    title="a collective under a condition of each rank's own clock",
    why=(
        "Clocks and start times differ between ranks, so some find the time over one turn before"
        " the others. These wait in the collective until the timeout."
    ),
    fix="Let rank 0 decide and broadcast its answer, or count steps instead of seconds.",
    confidence=0.65,
)

CLOCKS = set(
    """
    time.time time.monotonic time.perf_counter time.process_time time.time_ns time.monotonic_ns
    datetime.datetime.now datetime.datetime.utcnow timeit.default_timer
    """.split()
)
NUMERIC = {"int", "float", "round", "max", "min", "abs", "total_seconds"}
MEETS = {"barrier", "collective", "framework", "sharded"}
DEEPEST = 4


class Missed(NamedTuple):
    """What ranks that answer otherwise do not come to."""

    name: str
    line: int


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        if not any(word in module.text for word in ("time", "datetime")):
            continue
        places: list[ast.If | ast.While] = [*module.of(ast.If), *module.of(ast.While)]
        for node in places:
            if not asks_clock(program, module, node.test) or flow.guards(program, module, node):
                continue
            missed = _missed(program, module, node)
            if missed is not None:
                message = (
                    f"Each rank asks its own clock `{module.source_of(node.test)}`, and"
                    f" {missed.name} (line {missed.line}) needs all ranks."
                )
                found = RULE.finding(module, node, message)
                yield replace(found, reaches=(module.path, missed.line))


def asks_clock(program: Program, module: Module, node: ast.expr, depth: int = 0) -> bool:
    """Whether the time on this rank decides a condition."""
    if depth > DEEPEST:
        return False
    match node:
        case ast.BoolOp(values=values):
            return any(asks_clock(program, module, value, depth + 1) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return asks_clock(program, module, inner, depth + 1)
        case ast.Compare(left=left, comparators=others):
            return any(_holds_time(program, module, part, depth) for part in (left, *others))
        case ast.Name() as name:
            bound = [binding.value for binding in program.names.bindings(module, name)]
            known = [value for value in bound if value is not None]
            asking = [value for value in known if asks_clock(program, module, value, depth + 1)]
            return (
                bool(asking)
                and len(known) == len(bound)
                and all(value in asking or isinstance(value, ast.Constant) for value in known)
            )
        case ast.Call() as call:
            function = program.called(module, call)
            answers = [each.value for each in function.returns] if function is not None else []
            return function is not None and any(
                answer is not None and asks_clock(program, function.module, answer, depth + 1)
                for answer in answers
            )
    return False


def _holds_time(program: Program, module: Module, node: ast.expr, depth: int) -> bool:
    """Whether a number is a time of this rank's clock, and nothing that ranks told each other."""
    if depth > DEEPEST:
        return False
    match node:
        case ast.Call() as call:
            if program.dotted(module, call.func) in CLOCKS:
                return True
            inner = [
                *call.args,
                *([call.func.value] if isinstance(call.func, ast.Attribute) else []),
            ]
            return last_name(call.func) in NUMERIC and any(
                _holds_time(program, module, part, depth + 1) for part in inner
            )
        case ast.BinOp(left=left, right=right):
            return any(_holds_time(program, module, part, depth + 1) for part in (left, right))
        case ast.Attribute(attr="seconds", value=inner):
            return _holds_time(program, module, inner, depth + 1)
        case ast.Name() as name:
            found = program.names.bindings(module, name)
            return (
                bool(found)
                and all(
                    binding.kind == "value"
                    and binding.value is not None
                    and (
                        isinstance(binding.value, ast.Constant)
                        or _holds_time(program, module, binding.value, depth + 1)
                    )
                    for binding in found
                )
                and not all(isinstance(binding.value, ast.Constant) for binding in found)
            )
    return False


def _missed(program: Program, module: Module, node: ast.If | ast.While) -> Missed | None:
    """The collective that ranks miss which answer otherwise."""
    inside = _met(program, module, node.body)
    other = {reached.collective.name for reached in _met(program, module, node.orelse)}
    for reached in inside:
        if reached.collective.name not in other:
            return Missed(reached.collective.name, reached.node.lineno)
    if isinstance(node, ast.While):
        return _step_of(program, module, node.body, node)
    loop = _left_loop(module, node)
    if loop is None:
        return None
    for reached in _met(program, module, loop.body):
        return Missed(reached.collective.name, reached.node.lineno)
    return _step_of(program, module, loop.body, loop)


def _step_of(
    program: Program, module: Module, body: list[ast.stmt], loop: ast.AST
) -> Missed | None:
    nodes = [node for node in _calls(body) if module.scope_of(node) is module.scope_of(loop)]
    if has_step(program, module, nodes):
        at = next(node for node in nodes if last_name(node.func) == "backward")
        return Missed("the backward pass", at.lineno)
    return None


def _left_loop(module: Module, node: ast.If) -> ast.For | ast.AsyncFor | ast.While | None:
    """The loop that one branch of a condition leaves."""
    leaving = [each for each in (*node.body, *node.orelse) if isinstance(each, ast.Break)]
    returning = [each for each in (*node.body, *node.orelse) if isinstance(each, ast.Return)]
    for up in module.ancestors(node):
        if isinstance(up, FUNCTIONS):
            return None
        if isinstance(up, LOOPS) and (leaving or returning):
            return up
    return None


def _met(program: Program, module: Module, body: list[ast.stmt]) -> list[ReachedCollective]:
    return [
        reached
        for call in _calls(body)
        if not flow.guards(program, module, call)
        for reached in reached_by_call(program, module, call)
        if reached.collective.kind in MEETS
        and not reached.collective.group
        and reached.collective.sure >= 0.6
    ]


def _calls(body: list[ast.stmt]) -> list[ast.Call]:
    found = (node for statement in body for node in ast.walk(statement))
    return [node for node in found if isinstance(node, ast.Call)]
