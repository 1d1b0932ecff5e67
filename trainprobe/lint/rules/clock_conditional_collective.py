"""A collective under a condition that each rank asks of its own clock."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from trainprobe.lint import flow
from trainprobe.lint.missed import missed
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module, last_name
from trainprobe.lint.program import Program

RULE = Rule(
    id="clock-conditional-collective",
    cause="rank-conditional-collective",
    title="a collective under a condition of each rank's own clock or background work",
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
DEEPEST = 4


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        if not any(word in module.text for word in ("time", ".done()", ".is_alive()")):
            continue
        places: list[ast.If | ast.While] = [*module.of(ast.If), *module.of(ast.While)]
        for node in places:
            if flow.guards(program, module, node) or not (
                asks_clock(program, module, node.test)
                or _asks_background(program, module, node.test)
            ):
                continue
            way = missed(program, module, node)
            if way is not None:
                asked = "its own clock"
                if _asks_background(program, module, node.test):
                    asked = "how far its own background work is,"
                message = (
                    f"Each rank asks {asked} `{module.source_of(node.test)}`, and"
                    f" {way.name} (line {way.line}) needs all ranks."
                )
                found = RULE.finding(module, node, message)
                yield replace(found, reaches=(module.path, way.line))


def _asks_background(program: Program, module: Module, node: ast.expr) -> bool:
    """Whether a condition asks if a thread's or process's work is done, on this rank:
    `future.done()`.
    """
    match node:
        case ast.BoolOp(values=values):
            return any(_asks_background(program, module, value) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _asks_background(program, module, inner)
        case ast.Call(func=ast.Attribute(attr="done" | "is_alive"), args=[], keywords=[]):
            return program.called(module, node) is None
    return False


def asks_clock(program: Program, module: Module, node: ast.expr, depth: int = 0) -> bool:
    """Whether the time on this rank decides a condition."""
    if depth > DEEPEST:
        return False
    match node:
        case ast.BoolOp(values=values):
            return any(asks_clock(program, module, value, depth + 1) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return asks_clock(program, module, inner, depth + 1)
        case ast.Compare(left=left, ops=[operator], comparators=others) if not isinstance(
            operator, ast.Is | ast.IsNot
        ):
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
