"""A ring in which every rank receives first: nobody sends."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import flow, ranks
from trainprobe.lint.calls import callers
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import SCOPES, Function, Module
from trainprobe.lint.program import Program
from trainprobe.lint.values import argument

RULE = Rule(
    id="receive-before-send",
    cause="collective-order-mismatch",
    title="Every rank receives before it sends",
    why=(
        "torch.distributed.recv waits until the other rank has sent. Where each rank first receives"
        " from a neighbour, none comes to its send, and all wait for ever."
    ),
    fix=(
        "Post the send first, as work = dist.isend(...); dist.recv(...); work.wait(), or give both"
        " to dist.batch_isend_irecv; or let even ranks send first and odd ones receive first."
    ),
    confidence=0.85,
)

ENDS = {
    "torch.distributed.recv": "src",
    "torch.distributed.send": "dst",
    "torch.distributed.isend": "dst",
}
RECEIVES = "torch.distributed.recv"


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        if "recv" not in module.text:
            continue
        for holder in [None, *module.functions.values()]:
            nodes = module.top_calls if holder is None else holder.calls
            halves = [call for call in nodes if program.dotted(module, call.func) in ENDS]
            halves.sort(key=lambda call: (call.lineno, call.col_offset))
            if not halves or program.dotted(module, halves[0].func) != RECEIVES:
                continue
            if holder is not None and _only_for_some(program, holder):
                continue
            first, *others = halves
            sends = [call for call in others if program.dotted(module, call.func) != RECEIVES]
            if any(_runs_with(module, first, send) for send in sends) and all(
                _of_a_neighbour(program, module, call) for call in (first, *sends)
            ):
                line = sends[0].lineno
                message = f"All ranks wait here, before the first of them sends in line {line}."
                yield RULE.finding(module, first, message)


def _only_for_some(program: Program, function: Function) -> bool:
    """Whether a call of it runs on some ranks only, as that of the stage between two others."""
    return any(flow.guards(program, call.module, call.node) for call in callers(program, function))


def _of_a_neighbour(program: Program, module: Module, call: ast.Call) -> bool:
    """Whether every rank makes it, with another rank that is calculated from its own."""
    end = argument(call, ENDS[program.dotted(module, call.func)], 1)
    return (
        end is not None
        and ranks.kind_of(program, module, end) == "derived"
        and not flow.guards(program, module, call)
    )


def _runs_with(module: Module, first: ast.AST, second: ast.AST) -> bool:
    """Whether no condition lets one of them run without the other."""
    return _conditions(module, first) == _conditions(module, second)


def _conditions(module: Module, node: ast.AST) -> list[tuple[ast.AST, bool]]:
    """The conditions around a node, each with whether it stands in the branch that holds."""
    found: list[tuple[ast.AST, bool]] = []
    child = node
    for up in module.ancestors(node):
        if isinstance(up, SCOPES):
            break
        if isinstance(up, ast.If | ast.IfExp | ast.BoolOp | ast.ExceptHandler):
            body = getattr(up, "body", None)
            found.append((up, isinstance(body, list) and child in body))
        child = up
    return found
