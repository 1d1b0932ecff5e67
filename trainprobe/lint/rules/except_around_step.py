"""An `except` around a training step that lets one rank go on alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import calls
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Function, Module
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import STARTS, WRAPS, among
from trainprobe.lint.scenes import callers as scenes_callers

ID = "except-around-step"
CAUSE = "rank-conditional-collective"
WHY = "A rank that catches its error skips the rest of the step. The others wait in its gradient exchange, which then meets this rank's next step: another collective than theirs."
FIX = Fix("Let the error end the job, or let the ranks agree first: all_reduce a flag 'my step failed', and skip the step on all of them.")
BROAD = {"Exception", "BaseException", "RuntimeError", "torch.cuda.OutOfMemoryError", "torch.OutOfMemoryError", "ValueError", "torch.AcceleratorError"}
ENDS = {"sys.exit", "os._exit", "os.abort", "exit", "quit", "os.kill"}


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        for block in module.of(ast.Try):
            handler = next((one for one in block.handlers if _is_broad(program, module, one.type) and _goes_on(program, module, one)), None)
            if handler is not None and (step := _step(program, module, block.body)):
                yield _finding(program, module, handler, block, step)
        for within in module.of(ast.With):
            if any(_suppresses(program, module, item.context_expr) for item in within.items) and (step := _step(program, module, within.body)):
                yield _finding(program, module, within, within, step)


def _suppresses(program: Program, module: Module, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or program.dotted(module, node.func) != "contextlib.suppress":
        return False
    return any(_is_broad(program, module, one) for one in node.args)


def _finding(program: Program, module: Module, node: ast.AST, block: ast.AST, step: str) -> Finding:
    says = f"A rank that fails in {step} goes on here, without the others."
    return program.finding(ID, CAUSE, module, node, says=says, why=WHY, confidence=0.65, fix=FIX, about=block)


def _is_broad(program: Program, module: Module, node: ast.expr | None) -> bool:
    if node is None:
        return True
    if isinstance(node, ast.Tuple):
        return any(_is_broad(program, module, one) for one in node.elts)
    return program.dotted(module, node).removeprefix("~") in BROAD


def _goes_on(program: Program, module: Module, handler: ast.ExceptHandler) -> bool:
    """Whether some way through the handler leads back into training."""
    inside = [node for part in handler.body for node in ast.walk(part)]
    if any(isinstance(node, ast.Continue | ast.Return) for node in inside):
        return True
    last = handler.body[-1]
    if isinstance(last, ast.Raise):
        return False
    if any(isinstance(node, ast.Raise | ast.Break) for node in inside):
        return False
    return not any(isinstance(node, ast.Call) and program.dotted(module, node.func) in ENDS for node in inside)


def _step(program: Program, module: Module, body: list[ast.stmt]) -> str:
    """What in the block belongs to a training step, "" for none."""
    nodes = [node for part in body for node in ast.walk(part) if isinstance(node, ast.Call)]
    told = _own_step(program, module, nodes)
    if told:
        return told
    for node in nodes:
        function = program.called(module, node)
        if function is not None and function.name != "__init__":
            for one in sorted(calls.reaches(program, function), key=lambda each: (each.module.path, each.node.lineno)):
                if _is_step(program, one.module, one.calls):
                    return f"{function.name}, which does a training step"
    return ""


def _own_step(program: Program, module: Module, nodes: list[ast.Call]) -> str:
    if _is_step(program, module, nodes):
        return "a training step"
    if not any(isinstance(node.func, ast.Name | ast.Attribute) for node in nodes):
        return ""
    met = next((found[0] for node in nodes if (found := calls.borne_by_call(program, module, node)) and found[0].collective.kind == "collective"), None)
    return f"{met.collective.name}" if met is not None and _is_training(module, nodes[0]) else ""


def _is_training(module: Module, node: ast.AST) -> bool:
    function: Function | None = module.function_of(node)
    return function is not None and any(word in function.name for word in ("step", "train", "epoch", "loop", "fit"))


def _is_step(program: Program, module: Module, nodes: list[ast.Call]) -> bool:
    """A backward pass in which ranks meet."""
    for node in nodes:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
            name = program.dotted(module, node.func)
            if name == "torch.autograd.backward":
                continue
            return bool(among(program, module, *WRAPS, *STARTS)) and _is_followed(program, module, node)
    return False


def _is_followed(program: Program, module: Module, node: ast.Call) -> bool:
    """Whether an optimizer steps in the same function or in one that calls it: a backward pass alone is a measurement."""
    function = module.function_of(node)
    if function is None:
        return True
    near = [function, *(holder for site in scenes_callers(program, function) if (holder := site.module.function_of(site.node)) is not None)]
    if any(isinstance(call.func, ast.Attribute) and call.func.attr in {"step", "zero_grad"} for one in near for call in one.calls):
        return True
    return not scenes_callers(program, function) or len(near) == 1


RULE = Rule(ID, CAUSE, "One rank goes on after an error", WHY, 0.65, find)
