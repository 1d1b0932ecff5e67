"""Processes that are spawned from the body of a script without `if __name__ == "__main__"`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.loaders import LOADER, has_workers, start_method
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.order import Order
from trainprobe.lint.program import Program
from trainprobe.lint.rewrites import guarded
from trainprobe.lint.scenes import Call
from trainprobe.lint.starts import SPAWNING, method, starting

ID = "missing-main-guard"
CAUSE = "missing-main-guard"
WHY = "A spawned process imports the script again. Without the guard it starts processes itself: 'An attempt has been made to start a new process before the current process has finished its bootstrapping phase'."
FIX = Fix('Put the body of the script into a function main(), and call it beneath `if __name__ == "__main__":`.')


def find(program: Program) -> Iterator[Finding]:
    order = Order(program, _sees)
    for module in program.examined:
        if module.is_notebook or module.is_package:
            continue
        told: set[ast.AST] = set()
        for event in order.top(module):
            outer = event.via[0] if event.via else event.node
            if outer in told or outer not in module.parents or _is_guarded(module, outer):
                continue
            told.add(outer)
            what = event.module.source_of(event.node, 50)
            yield program.finding(
                ID,
                CAUSE,
                module,
                outer,
                says=f"This starts processes by spawn ({what}) whenever the file is imported.",
                why=WHY,
                confidence=0.85,
                fix=_fix(module, outer),
            )
            break


def _fix(module: Module, outer: ast.AST) -> Fix:
    """The last statement of a script goes under the guard: what is run does the same as before, and what is imported no more."""
    last = module.tree.body[-1]
    edits = guarded(module, last, '__name__ == "__main__"') if isinstance(last, ast.Expr) and module.statement_of(outer) is last else None
    return Fix(FIX.says, edits, safe=True) if edits is not None else FIX


def _sees(program: Program, module: Module, call: ast.Call) -> str:
    kind = starting(program, module, call)
    if kind in {"spawn", "Pool", "start"}:
        return "start" if method(program, module, call) in SPAWNING else ""
    if kind == "Process":
        return ""
    loader = Call(module, call, LOADER)
    if program.dotted(module, call.func) == LOADER and has_workers(program, loader) and start_method(program, loader) in SPAWNING:
        return "start"
    return ""


def _is_guarded(module: Module, node: ast.AST) -> bool:
    return any(isinstance(up, ast.If) and "__name__" in ast.unparse(up.test) for up in module.ancestors(node))


RULE = Rule(ID, CAUSE, "No guard around the script's body", WHY, 0.85, find)
