"""Processes that are spawned from the body of a script without `if __name__ == "__main__"`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.calls import Call
from trainprobe.lint.loaders import LOADER, has_workers, start_method
from trainprobe.lint.model import Edit, Finding, Rule
from trainprobe.lint.modules import FUNCTIONS, Module
from trainprobe.lint.order import Order
from trainprobe.lint.program import Program
from trainprobe.lint.reached import is_of_all
from trainprobe.lint.rewrites import guarded
from trainprobe.lint.starts import SPAWNING, method, starting

RULE = Rule(
    id="missing-main-guard",
    cause="missing-main-guard",
    title="No guard around the script's body",
    why=(
        "A spawned process imports the script again. Without the guard it starts processes itself:"
        " 'An attempt has been made to start a new process before the current process has finished"
        " its bootstrapping phase'."
    ),
    fix=(
        "Move the body of the script into a function main() and call it under `if __name__ =="
        ' "__main__":`.'
    ),
    confidence=0.85,
)


def find(program: Program) -> Iterator[Finding]:
    order = Order(program, _event_kind)
    for module in program.examined:
        if module.is_notebook or module.is_package:
            continue
        reported: set[ast.AST] = set()
        for event in order.top(module):
            outer = event.via[0] if event.via else event.node
            if outer in reported or outer not in module.parents or module.is_of_script(outer):
                continue
            reported.add(outer)
            if not all(_runs_always(event.module, each) for each in (*event.via[1:], event.node)):
                continue
            what = event.module.source_of(event.node, 50)
            sentence = f"Importing this file starts processes with spawn ({what})."
            yield RULE.finding(module, outer, sentence, edits=_edits(module, outer))
            break


def _runs_always(where: Module, call: ast.AST) -> bool:
    """Whether no condition in its function, but for the number of ranks or an option of the user,
    decides about a call.
    """
    module = next((each for each in where.program.modules.values() if call in each.parents), where)
    child = call
    for up in module.ancestors(call):
        if isinstance(up, FUNCTIONS):
            break
        if isinstance(up, ast.If) and child is not up.test and not is_of_all(module, up.test):
            return False
        child = up
    return True


def _edits(module: Module, outer: ast.AST) -> tuple[Edit, ...] | None:
    """Put a script's last statement under the guard: running it does the same as before."""
    last = module.tree.body[-1]
    if isinstance(last, ast.Expr) and module.statement_of(outer) is last:
        return guarded(module, last, '__name__ == "__main__"')
    return None


def _event_kind(program: Program, module: Module, call: ast.Call) -> str:
    kind = starting(program, module, call)
    if kind in {"spawn", "Pool", "start"}:
        return "start" if method(program, module, call) in SPAWNING else ""
    if kind == "Process":
        return ""
    loader = Call(module, call, LOADER)
    if (
        program.dotted(module, call.func) == LOADER
        and has_workers(program, loader)
        and start_method(program, loader) in SPAWNING
    ):
        return "start"
    return ""
