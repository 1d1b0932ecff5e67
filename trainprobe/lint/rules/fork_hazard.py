"""A fork after threads were started, or after CUDA was touched."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.devices import touches_cuda
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.order import Event, Order, exclusive
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import kinds
from trainprobe.lint.starts import method, starting

ID = "fork-hazard"
CAUSE = "fork-inherited-lock"
WHY = "Only the forking thread lives on in the child. A lock that another thread held at that moment is never released there: the child hangs at its first use."
CUDA = "A CUDA context does not survive a fork: the first use in the child fails with 'Cannot re-initialize CUDA in forked subprocess'."
FIX = Fix("Start processes by spawn or forkserver, or before any thread is started and before CUDA is touched.")
POOLS = {
    "concurrent.futures.ThreadPoolExecutor().submit",
    "concurrent.futures.ThreadPoolExecutor().map",
    "concurrent.futures.thread.ThreadPoolExecutor().submit",
}


def find(program: Program) -> Iterator[Finding]:
    if not any("fork" in module.text for module in program.modules.values()):
        return
    told: set[ast.AST] = set()
    for trace in Order(program, _sees).traces():
        before: list[Event] = []
        for event in trace:
            if event.kind != "fork":
                before.append(event)
            elif event.node not in told:
                first = next((one for one in before if one.module is not event.module or not exclusive(event.module, one.node, event.node)), None)
                if first is not None:
                    told.add(event.node)
                    yield _finding(program, event, first)


def _finding(program: Program, event: Event, first: Event) -> Finding:
    where = f"line {getattr(first.node, 'lineno', 0)}" + ("" if first.module is event.module else f" of {first.module.path.rpartition('/')[2]}")
    if first.kind == "cuda":
        says = f"This forks after {first.module.source_of(first.node, 50)} in {where} has touched CUDA."
        return program.finding(ID, "cuda-in-forked-worker", event.module, event.node, says=says, why=CUDA, confidence=0.7, fix=FIX)
    says = f"This forks after {where} has started a thread ({first.module.source_of(first.node, 50)})."
    return program.finding(ID, CAUSE, event.module, event.node, says=says, why=WHY, confidence=0.65, fix=FIX)


def _sees(program: Program, module: Module, call: ast.Call) -> str:
    name = program.dotted(module, call.func)
    if name in {"os.fork", "os.forkpty"} or (starting(program, module, call) in {"start", "Pool"} and method(program, module, call) == "fork"):
        return "fork"
    if name in POOLS or (name.endswith("().start") and "threading.Thread" in kinds(program, name[: -len("().start")])):
        return "thread"
    return "cuda" if touches_cuda(program, module, call) else ""


RULE = Rule(ID, CAUSE, "A fork beside threads or CUDA", WHY, 0.65, find)
