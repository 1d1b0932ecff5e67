"""A fork after threads were started, or after CUDA was touched."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.calls import class_and_bases
from trainprobe.lint.devices import touches_cuda, uses_cuda
from trainprobe.lint.expressions import Expression, origin
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module, receiver_of
from trainprobe.lint.order import Event, preceded
from trainprobe.lint.program import Program
from trainprobe.lint.starts import method, starting
from trainprobe.lint.values import argument

RULE = Rule(
    id="fork-hazard",
    cause="fork-inherited-lock",
    title="A fork after threads or CUDA",
    why=(
        "Only the forking thread exists in the child. A lock that another thread held at that"
        " moment is never released there: the child hangs at its first use."
    ),
    fix=(
        "Start processes with spawn or forkserver, or before any thread is started and before CUDA"
        " is used."
    ),
    confidence=0.65,
)


CUDA = (
    "A CUDA context does not survive a fork: the first use in the child fails with 'Cannot"
    " re-initialize CUDA in forked subprocess'."
)

FORKS = {"os.fork", "os.forkpty"}
POOL_METHODS = (
    *("map", "map_async", "imap", "imap_unordered", "starmap", "starmap_async"),
    *("apply", "apply_async"),
)
POOLS = {
    "concurrent.futures.ThreadPoolExecutor().submit",
    "concurrent.futures.ThreadPoolExecutor().map",
    "concurrent.futures.thread.ThreadPoolExecutor().submit",
}


def find(program: Program) -> Iterator[Finding]:
    if not any(
        "fork" in module.text or "multiprocessing" in module.text
        for module in program.modules.values()
    ):
        return
    for event, first in preceded(program, _event_kind, "fork"):
        if first.kind == "cuda" and _target_uses_cuda(program, event) is False:
            continue
        if _has_method(program, event):
            yield _finding(event, first)
        elif first.kind == "cuda" and _target_uses_cuda(program, event):
            yield _finding(event, first, by_default=True)


def _has_method(program: Program, event: Event) -> bool:
    """Whether the program itself asks for a fork; else Linux does so before Python 3.14."""
    assert isinstance(event.node, ast.Call)
    name = program.dotted(event.module, event.node.func)
    return name in FORKS or method(program, event.module, event.node) == "fork"


def _target_uses_cuda(program: Program, event: Event) -> bool | None:
    """Whether what a process or a pool runs uses CUDA; None where that is unknown."""
    process = receiver_of(event.node, "start")
    if process is None:
        return _pool_uses_cuda(program, event)
    made = origin(program, event.module, process)
    target = argument(made.node, "target", 1) if isinstance(made.node, ast.Call) else None
    return uses_cuda(program, Expression(made.module, target)) if target is not None else None


def _pool_uses_cuda(program: Program, event: Event) -> bool | None:
    """Whether a function that is given to the pool of a call uses CUDA."""
    module = event.module
    holder = module.function_of(event.node)
    answers: set[bool | None] = set()
    for call in holder.calls if holder is not None else module.top_calls:
        pool = receiver_of(call, *POOL_METHODS)
        if pool is None or not call.args:
            continue
        made = origin(program, module, pool)
        within = module.statement_of(event.node)
        entered = isinstance(within, ast.With) and any(
            item.context_expr is event.node
            and isinstance(item.optional_vars, ast.Name)
            and isinstance(pool, ast.Name)
            and item.optional_vars.id == pool.id
            for item in within.items
        )
        if made.node is event.node or entered:
            answers.add(uses_cuda(program, Expression(module, call.args[0])))
    return True if True in answers else False if answers == {False} else None


def _finding(event: Event, first: Event, *, by_default: bool = False) -> Finding:
    where = first.module.line_of(first.node, event.module)
    if first.kind == "cuda":
        forks = (
            "This forks, by Python's default on Linux before 3.14," if by_default else "This forks"
        )
        message = (
            f"{forks} after {first.module.source_of(first.node, 50)} in {where} has initialised"
            " CUDA."
        )
        return RULE.finding(
            event.module,
            event.node,
            message,
            cause="cuda-in-forked-worker",
            why=CUDA,
            confidence=0.7,
        )
    message = (
        f"This forks after {where} has started a thread ({first.module.source_of(first.node, 50)})."
    )
    return RULE.finding(event.module, event.node, message)


def _event_kind(program: Program, module: Module, call: ast.Call) -> str:
    name = program.dotted(module, call.func)
    if name in FORKS or (
        starting(program, module, call) in {"start", "Pool"}
        and method(program, module, call) in {"fork", ""}
    ):
        return "fork"
    if name in POOLS or (
        name.endswith("().start")
        and "threading.Thread" in class_and_bases(program, name[: -len("().start")])
    ):
        return "thread"
    return "cuda" if touches_cuda(program, module, call) else ""
