"""The collectives that some ranks miss when a condition is not answered alike by all."""

from __future__ import annotations

import ast
from typing import NamedTuple

from trainprobe.lint import flow
from trainprobe.lint.flow import LOOPS
from trainprobe.lint.modules import FUNCTIONS, Module, last_name
from trainprobe.lint.program import Program
from trainprobe.lint.reached import ReachedCollective, reached_by_call
from trainprobe.lint.steps import has_step

BACKWARD = "the backward pass"
MEETS = {"barrier", "collective", "framework", "sharded"}


class Missed(NamedTuple):
    """What ranks that answer otherwise do not come to."""

    name: str
    line: int


def missed(program: Program, module: Module, node: ast.If | ast.While) -> Missed | None:
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
        return _skipped(program, module, node)
    for reached in _met(program, module, loop.body):
        return Missed(reached.collective.name, reached.node.lineno)
    return _step_of(program, module, loop.body, loop)


def _skipped(program: Program, module: Module, node: ast.If) -> Missed | None:
    """What `continue` leaves out of this turn of the loop."""
    skips = any(isinstance(each, ast.Continue) for each in (*node.body, *node.orelse))
    loop = next((up for up in module.ancestors(node) if isinstance(up, LOOPS)), None)
    if not skips or loop is None:
        return None
    for reached in _met(program, module, loop.body):
        if flow.before(module, node, reached.node) and reached.module is module:
            return Missed(reached.collective.name, reached.node.lineno)
    behind = [each for each in loop.body if flow.before(module, node, each)]
    return _step_of(program, module, behind, loop)


def _step_of(
    program: Program, module: Module, body: list[ast.stmt], loop: ast.AST
) -> Missed | None:
    nodes = [node for node in _calls(body) if module.scope_of(node) is module.scope_of(loop)]
    if has_step(program, module, nodes):
        at = next(node for node in nodes if last_name(node.func) == "backward")
        return Missed(BACKWARD, at.lineno)
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
