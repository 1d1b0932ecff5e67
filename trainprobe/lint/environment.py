"""Where source sets environment variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainprobe.lint.alone import is_alone
from trainprobe.lint.expressions import Expression, origin
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program, remembered


class Setting(NamedTuple):
    """A variable that is set: the statement or call, its name, and the expression that it gets."""

    module: Module
    node: ast.AST
    variable: str
    value: ast.expr | None


@remembered
def settings(program: Program, module: Module) -> list[Setting]:
    """Return the environment variables that a module sets in its own process."""
    if "environ" not in module.text and "putenv" not in module.text:
        return []
    return list(_settings(program, module))


def _settings(program: Program, module: Module) -> Iterator[Setting]:
    for statement in module.of(ast.Assign):
        for target in statement.targets:
            if (
                isinstance(target, ast.Subscript)
                and program.dotted(module, target.value) == "os.environ"
            ):
                name = program.value(module, target.slice)
                if isinstance(name, str):
                    yield Setting(module, statement, name, statement.value)
    for call in module.of(ast.Call):
        yield from _of_call(program, module, call)


def _of_call(program: Program, module: Module, call: ast.Call) -> Iterator[Setting]:
    called = program.dotted(module, call.func)
    if called in {"os.environ.setdefault", "os.putenv"} and len(call.args) == 2:
        name = program.value(module, call.args[0])
        if isinstance(name, str):
            yield Setting(module, call, name, call.args[1])
    elif called == "os.environ.update":
        for keyword in call.keywords:
            if keyword.arg is not None:
                yield Setting(module, call, keyword.arg, keyword.value)
        if call.args and isinstance(call.args[0], ast.Dict):
            for key, value in zip(call.args[0].keys, call.args[0].values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield Setting(module, call, key.value, value)


CPU_COUNTS = set(
    """
    os.cpu_count() multiprocessing.cpu_count() torch.multiprocessing.cpu_count() psutil.cpu_count()
    os.process_cpu_count()
    """.split()
)


def counts_all_cpus(program: Program, place: Expression) -> bool:
    """Whether an expression counts all CPUs, neither divided nor bounded."""
    behind = origin(program, place.module, place.node)
    found = False
    for node in ast.walk(behind.node):
        if isinstance(node, ast.Call | ast.Name) and is_alone(program, behind.module, node):
            continue  # `cpu_count() if not ddp else 0`
        if isinstance(node, ast.BinOp) and isinstance(
            node.op, ast.FloorDiv | ast.Div | ast.RShift | ast.Mod
        ):
            return False
        if isinstance(node, ast.Call):
            called = program.dotted(behind.module, node)
            if called in {"min()", "len()"}:
                return False
            found = found or called in CPU_COUNTS
        elif isinstance(node, ast.Name) and node is not behind.node:
            inner = origin(program, behind.module, node)
            if inner.node is not node and isinstance(inner.node, ast.Call | ast.BoolOp | ast.BinOp):
                if any(
                    isinstance(each, ast.Call)
                    and program.dotted(inner.module, each) in {"min()", "len()"}
                    for each in ast.walk(inner.node)
                ):
                    return False
                if isinstance(inner.node, ast.BinOp) and isinstance(
                    inner.node.op, ast.FloorDiv | ast.Div
                ):
                    return False
                found = found or any(
                    isinstance(each, ast.Call) and program.dotted(inner.module, each) in CPU_COUNTS
                    for each in ast.walk(inner.node)
                )
    return found
