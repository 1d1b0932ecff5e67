"""An `except` around a training step that lets one rank go on alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import calls
from trainprobe.lint.calls import callers, is_subclass
from trainprobe.lint.jobs import STARTS, WRAPS, calls_in_job
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Function, Module
from trainprobe.lint.program import Program
from trainprobe.lint.reached import reached_by_call

RULE = Rule(
    id="except-around-step",
    cause="rank-conditional-collective",
    title="One rank continues after an error",
    why=(
        "A rank that catches its error skips the rest of the step. The others wait in that step's"
        " gradient exchange, and this rank's next collective does not match theirs."
    ),
    fix=(
        "Let the error end the job, or let the ranks agree first: all_reduce a 'my step failed'"
        " flag and skip the step on every rank."
    ),
    confidence=0.65,
)


BROAD = set(
    """
    Exception BaseException RuntimeError torch.cuda.OutOfMemoryError torch.OutOfMemoryError
    ValueError torch.AcceleratorError
    """.split()
)
ENDS = {"sys.exit", "os._exit", "os.abort", "exit", "quit", "os.kill"}
GOES_ON = "A rank that fails in {} continues here without the others."


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        for block in module.of(ast.Try):
            handler = next(
                (
                    entry
                    for entry in block.handlers
                    if _is_broad(program, module, entry.type) and _goes_on(program, module, entry)
                ),
                None,
            )
            if _is_within_backward(program, module, block):
                continue
            if handler is not None and (step := _step(program, module, block.body)):
                yield RULE.finding(module, handler, GOES_ON.format(step), about=block)
        for within in module.of(ast.With):
            if any(_suppresses(program, module, item.context_expr) for item in within.items) and (
                step := _step(program, module, within.body)
            ):
                yield RULE.finding(module, within, GOES_ON.format(step), about=within)


def _is_within_backward(program: Program, module: Module, node: ast.AST) -> bool:
    """Whether it is part of one operation of a backward pass: an `autograd.Function`."""
    cls = module.class_of(node)
    return cls is not None and is_subclass(
        program, cls.full_name, "torch.autograd.Function", "torch.autograd.function.Function"
    )


def _suppresses(program: Program, module: Module, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or program.dotted(module, node.func) != "contextlib.suppress":
        return False
    return any(_is_broad(program, module, argument) for argument in node.args)


def _is_broad(program: Program, module: Module, node: ast.expr | None) -> bool:
    if node is None:
        return True
    if isinstance(node, ast.Tuple):
        return any(_is_broad(program, module, element) for element in node.elts)
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
    return not any(isinstance(node, ast.Call) and _ends(program, module, node) for node in inside)


def _ends(program: Program, module: Module, call: ast.Call, depth: int = 0) -> bool:
    """Whether a call ends the process or raises, also through a function that does so last."""
    if program.dotted(module, call.func) in ENDS:
        return True
    function = program.called(module, call)
    if function is None or depth > 3:
        return False
    match function.node.body[-1]:
        case ast.Raise():
            return not function.returns
        case ast.Expr(value=ast.Call() as last):
            return not function.returns and _ends(program, function.module, last, depth + 1)
    return False


def _step(program: Program, module: Module, body: list[ast.stmt]) -> str:
    """What in the block belongs to a training step, "" for none."""
    nodes = [node for part in body for node in ast.walk(part) if isinstance(node, ast.Call)]
    found = _own_step(program, module, nodes)
    if found:
        return found
    for node in nodes:
        function = program.called(module, node)
        if function is not None and function.name != "__init__":
            for item in sorted(
                calls.reaches(program, function),
                key=lambda each: (each.module.path, each.node.lineno),
            ):
                if _is_step(program, item.module, item.calls):
                    return f"{function.name}, which does a training step"
    return ""


def _own_step(program: Program, module: Module, nodes: list[ast.Call]) -> str:
    if _is_step(program, module, nodes):
        return "a training step"
    if not any(isinstance(node.func, ast.Name | ast.Attribute) for node in nodes):
        return ""
    met = next(
        (
            found[0]
            for node in nodes
            if (found := reached_by_call(program, module, node))
            and found[0].collective.kind == "collective"
        ),
        None,
    )
    return f"{met.collective.name}" if met is not None and _is_training(module, nodes[0]) else ""


def _is_training(module: Module, node: ast.AST) -> bool:
    function: Function | None = module.function_of(node)
    return function is not None and any(
        part in function.name for part in ("step", "train", "epoch", "loop", "fit")
    )


def _is_step(program: Program, module: Module, nodes: list[ast.Call]) -> bool:
    """A backward pass in which ranks meet."""
    for node in nodes:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
            name = program.dotted(module, node.func)
            if name == "torch.autograd.backward":
                continue
            return bool(calls_in_job(program, module, *WRAPS, *STARTS)) and _is_followed(
                program, module, node
            )
    return False


def _is_followed(program: Program, module: Module, node: ast.Call) -> bool:
    """Whether an optimizer steps in this function or a caller; else it is a measurement."""
    function = module.function_of(node)
    if function is None:
        return True
    near = [
        function,
        *(
            holder
            for site in callers(program, function)
            if (holder := site.module.function_of(site.node)) is not None
        ),
    ]
    if any(
        isinstance(call.func, ast.Attribute) and call.func.attr in {"step", "zero_grad"}
        for item in near
        for call in item.calls
    ):
        return True
    return not callers(program, function) or len(near) == 1
