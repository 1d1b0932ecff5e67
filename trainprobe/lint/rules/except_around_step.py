"""An `except` around a training step that lets one rank go on alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint import calls
from trainprobe.lint.alone import JOINED
from trainprobe.lint.calls import is_subclass
from trainprobe.lint.collectives import GROUP_AT
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Function, Module, last_name
from trainprobe.lint.program import Program
from trainprobe.lint.reached import reached_by_call
from trainprobe.lint.steps import has_step

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
    confidence=0.45,  # none of four in code of others was right
    plain_hint=0.45,
)


BROAD = set(
    """
    Exception BaseException RuntimeError torch.cuda.OutOfMemoryError torch.OutOfMemoryError
    ValueError torch.AcceleratorError
    """.split()
)
ALONE = re.compile(r"world_size|distributed|n_gpu|num_gpus|num_processes")
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
    return not _agrees(program, module, handler, inside) and _passes(program, module, handler.body)


def _passes(program: Program, module: Module, body: list[ast.stmt]) -> bool:
    """Whether some way through statements continues, returns or comes to their end."""
    for statement in body:
        match statement:
            case ast.Continue() | ast.Return():
                return True
            case ast.Raise() | ast.Break():
                return False
            case ast.If(test=test, body=first, orelse=other):
                if ALONE.search(module.source_of(test, 200)):
                    return False  # what one process does alone, or a choice of the user
                ways = [_passes(program, module, first), _passes(program, module, other)]
                if not any(ways) or (JOINED.search(module.source_of(test)) and not ways[0]):
                    return False  # also where it goes on only without other ranks
            case ast.With(body=inner) | ast.Try(body=inner):
                if not _passes(program, module, inner):
                    return False
            case _:
                calls_here = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
                if any(_ends(program, module, node) for node in calls_here):
                    return False
    return True


def _agrees(
    program: Program, module: Module, handler: ast.ExceptHandler, inside: list[ast.AST]
) -> bool:
    """Whether the ranks meet about the failure: in the handler, or afterwards about what it sets:
    `failed = True`, and then `all_reduce(failed)`.
    """
    calls_inside = [node for node in inside if isinstance(node, ast.Call)]
    if any(reached_by_call(program, module, node) for node in calls_inside):
        return True
    bound = {
        module.source_of(target)
        for node in inside
        if isinstance(node, ast.Assign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }
    holder = module.function_of(handler)
    for statement in sorted(module.of(ast.Assign), key=lambda each: each.lineno):
        # what is made of it: `flag = torch.tensor([failed])`
        if (
            statement.lineno > handler.lineno
            and module.function_of(statement) is holder
            and _names(module, statement.value) & bound
        ):
            bound |= {module.source_of(target) for target in statement.targets}
    if any(
        asking.lineno > handler.lineno
        and module.function_of(asking) is holder
        and _names(module, asking.test) & bound
        and _catches_up(program, module, asking)
        for asking in module.of(ast.If)
    ):
        return True
    later = holder.calls if holder is not None else module.top_calls
    return any(
        node.lineno > handler.lineno
        and any(
            _names(module, entry) & bound
            for entry in (*node.args, *(keyword.value for keyword in node.keywords))
        )
        and (last_name(node.func) in GROUP_AT or reached_by_call(program, module, node))
        for node in later
    )


def _catches_up(program: Program, module: Module, asking: ast.If) -> bool:
    """Whether what follows a failure does a backward pass, in which the others meet this rank."""
    inner = [node for part in asking.body for node in ast.walk(part) if isinstance(node, ast.Call)]
    reached = {
        each
        for node in inner
        if (function := program.called(module, node)) is not None
        for each in (function, *calls.reaches(program, function))
    }
    return any(
        last_name(node.func) == "backward"
        for node in (*inner, *(call for each in reached for call in each.calls))
    )


def _names(module: Module, node: ast.expr) -> set[str]:
    return {
        module.source_of(part)
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


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
                if has_step(program, item.module, item.calls):
                    return f"{function.name}, which does a training step"
    return ""


def _own_step(program: Program, module: Module, nodes: list[ast.Call]) -> str:
    if has_step(program, module, nodes):
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
