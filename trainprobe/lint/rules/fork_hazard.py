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

POOLS = {
    "concurrent.futures.ThreadPoolExecutor().submit",
    "concurrent.futures.ThreadPoolExecutor().map",
    "concurrent.futures.thread.ThreadPoolExecutor().submit",
}


def find(program: Program) -> Iterator[Finding]:
    if not any("fork" in module.text for module in program.modules.values()):
        return
    for event, first in preceded(program, _event_kind, "fork"):
        if first.kind == "cuda" and _target_uses_cuda(program, event) is False:
            continue
        yield _finding(event, first)


def _target_uses_cuda(program: Program, event: Event) -> bool | None:
    """Whether what a started Process runs uses CUDA; None where that is unknown."""
    process = receiver_of(event.node, "start")
    if process is None:
        return None
    made = origin(program, event.module, process)
    target = argument(made.node, "target", 1) if isinstance(made.node, ast.Call) else None
    return uses_cuda(program, Expression(made.module, target)) if target is not None else None


def _finding(event: Event, first: Event) -> Finding:
    where = first.module.line_of(first.node, event.module)
    if first.kind == "cuda":
        message = (
            f"This forks after {first.module.source_of(first.node, 50)} in {where} has initialised"
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
    if name in {"os.fork", "os.forkpty"} or (
        starting(program, module, call) in {"start", "Pool"}
        and method(program, module, call) == "fork"
    ):
        return "fork"
    if name in POOLS or (
        name.endswith("().start")
        and "threading.Thread" in class_and_bases(program, name[: -len("().start")])
    ):
        return "thread"
    return "cuda" if touches_cuda(program, module, call) else ""
