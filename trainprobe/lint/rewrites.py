"""Rewrites shared by rules. Each keeps the behaviour on one rank, or is None."""

from __future__ import annotations

import ast

from trainprobe.lint.environment import CPU_COUNTS
from trainprobe.lint.expressions import Expression, origin
from trainprobe.lint.fixing import insert_line
from trainprobe.lint.model import Edit
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program

SHARE = 'int(os.environ.get("LOCAL_WORLD_SIZE", "1"))'


def stands_alone(module: Module, statement: ast.stmt) -> bool:
    """Whether a statement has its lines to itself, but for a comment."""
    first, last = (
        module.lines[statement.lineno - 1],
        module.lines[(statement.end_lineno or statement.lineno) - 1],
    )
    behind = last.encode()[statement.end_col_offset or 0 :].decode(errors="replace").strip()
    return not first.encode()[: statement.col_offset].strip() and (
        not behind or behind.startswith("#")
    )


def guarded(module: Module, statement: ast.stmt, condition: str) -> tuple[Edit, ...] | None:
    """Put a simple statement under `if condition:`; continuation lines keep their indentation."""
    if (
        module.is_notebook
        or not isinstance(statement, ast.Expr | ast.Assign)
        or not stands_alone(module, statement)
    ):
        return None
    line = module.lines[statement.lineno - 1]
    indent = line[: len(line) - len(line.lstrip())]
    step = "\t" if indent.startswith("\t") else "    "
    return (
        Edit(
            statement.lineno,
            len(indent),
            statement.lineno,
            len(indent),
            f"if {condition}:\n{indent}{step}",
        ),
    )


def taken_out(module: Module, statement: ast.stmt) -> Edit | None:
    """Remove a statement of one line that stands alone, with its line."""
    if (
        statement.end_lineno != statement.lineno
        or not stands_alone(module, statement)
        or statement.lineno >= len(module.lines)
    ):
        return None
    return Edit(statement.lineno, 0, statement.lineno + 1, 0, "")


def name_of(module: Module, dotted: str, before: int) -> str:
    """Return the name of an imported module at the top level before a line, or ""."""
    for name, found in module.bindings[module.tree].items():
        for item in found:
            if item.kind == "import" and item.line < before and len(found) == 1:
                if item.dotted == dotted:
                    return name
                if (
                    dotted.startswith(f"{item.dotted}.")
                    and isinstance(item.node, ast.Import)
                    and any(alias.name == dotted for alias in item.node.names)
                ):
                    return f"{name}{dotted[len(item.dotted) :]}"
    return ""


def with_import(module: Module, name: str, before: int) -> tuple[Edit, ...] | None:
    """The edits that import a module of Python's; None where the name means something else."""
    if name_of(module, name, before) == name:
        return ()
    holder = [item for scope in module.bindings.values() for item in scope.get(name, [])]
    if module.is_notebook or any(item.kind != "import" or item.dotted != name for item in holder):
        return None
    for statement in module.tree.body:
        doc = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not doc and not (
            isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        ):
            return (
                (insert_line(module, statement, f"import {name}"),)
                if statement.lineno <= before and stands_alone_first(module, statement)
                else None
            )
    return None


def stands_alone_first(module: Module, statement: ast.stmt) -> bool:
    """Whether nothing stands ahead of a statement in its line."""
    first = min(
        [
            statement.lineno,
            *(decorator.lineno for decorator in getattr(statement, "decorator_list", [])),
        ]
    )
    return not module.lines[first - 1].encode()[: statement.col_offset].strip()


def shared_cpus(program: Program, place: Expression) -> tuple[Edit, ...] | None:
    """Divide a count of all CPUs among the node's ranks, where the expression has it."""
    behind = origin(program, place.module, place.node)
    if behind.module is not place.module or behind.module.is_notebook:
        return None
    counts = [
        node
        for node in ast.walk(behind.node)
        if isinstance(node, ast.Call)
        and program.dotted(behind.module, node) in CPU_COUNTS
        and not node.args
    ]
    if len(counts) != 1 or counts[0].lineno != counts[0].end_lineno:
        return None
    if any(isinstance(up, ast.JoinedStr) for up in behind.module.ancestors(counts[0])):
        return None  # before Python 3.12 places inside an f-string are not those of the source
    whole: ast.expr = counts[0]
    above = behind.module.parents.get(whole)
    if isinstance(above, ast.BoolOp):  # `os.cpu_count() or 1`
        if (
            not isinstance(above.op, ast.Or)
            or above.values[0] is not whole
            or above.lineno != above.end_lineno
        ):
            return None
        whole = above
    imported = with_import(behind.module, "os", whole.lineno)
    if imported is None:
        return None
    text = behind.module.source_of(whole, 200)
    shared = f"max(1, {f'({text})' if whole is above else text} // {SHARE})"
    column, end = (
        behind.module.column_of(whole.lineno, whole.col_offset),
        behind.module.column_of(whole.lineno, whole.end_col_offset or 0),
    )
    return (*imported, Edit(whole.lineno, column, whole.lineno, end, shared))
