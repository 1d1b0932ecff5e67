"""Calls that start processes, and their start method."""

from __future__ import annotations

import ast

from trainprobe.lint.calls import Call
from trainprobe.lint.expressions import Expression, argument_value, origin
from trainprobe.lint.loaders import default_method
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.values import argument

MODULES = ("multiprocessing.", "torch.multiprocessing.")
SPAWN = {"torch.multiprocessing.spawn"}
SPAWNING = {"spawn", "forkserver"}


def starting(program: Program, module: Module, call: ast.Call) -> str:
    """For a call that starts processes "spawn" | "Process" | "Pool" | "start", else ""."""
    name = program.dotted(module, call.func)
    if name in SPAWN:
        return "spawn"
    if not name.startswith(MODULES):
        return ""
    last = name.rpartition(".")[2]
    if last == "start" and name.endswith(".Process().start"):
        return "start"
    return last if last in {"Process", "Pool"} else ""


def method(program: Program, module: Module, call: ast.Call) -> str:
    """The start method of such a call, of its context or set_start_method; "" for the default."""
    if program.dotted(module, call.func) in SPAWN:
        value = argument_value(program, Call(module, call, ""), "start_method", 4, default="spawn")
        return value if isinstance(value, str) else "?"
    if isinstance(call.func, ast.Attribute):
        holder = origin(program, module, call.func.value)
        if call.func.attr == "start" and isinstance(holder.node, ast.Call):
            return method(program, holder.module, holder.node)
        context = _context(program, holder)
        if context:
            return context
    return default_method(program, Call(module, call, ""))


def _context(program: Program, holder: Expression) -> str:
    if (
        not isinstance(holder.node, ast.Call)
        or program.dotted(holder.module, holder.node.func).rpartition(".")[2] != "get_context"
    ):
        return ""
    item = argument(holder.node, "method", 0)
    value = program.value(holder.module, item) if item is not None else ""
    return value if isinstance(value, str) else "?"
