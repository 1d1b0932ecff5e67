"""`datasets.map(num_proc=…)` after CUDA was touched: its forked children cannot use CUDA."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint.calls import Call
from trainprobe.lint.devices import is_on_gpu, touches_cuda, uses_cuda
from trainprobe.lint.expressions import Expression, resolved_argument
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.order import Event, preceded
from trainprobe.lint.program import Program
from trainprobe.lint.values import UNKNOWN, argument

RULE = Rule(
    id="map-after-cuda",
    cause="cuda-in-forked-worker",
    title="Forked workers after CUDA was touched",
    why=(
        "map and filter with num_proc fork this process (with num_proc=1 too, from datasets 4.1 on;"
        " None does not fork). A CUDA context does not survive a fork: the first use in a child"
        " fails with 'Cannot re-initialize CUDA in forked subprocess'."
    ),
    fix=("Prepare the data before anything uses CUDA, or in a separate script, or omit num_proc."),
    confidence=0.7,
)


def find(program: Program) -> Iterator[Finding]:
    if not any("num_proc" in module.text for module in program.modules.values()):
        return
    for event, cuda in preceded(program, _event_kind, "map"):
        used = _uses_cuda(program, event)
        if used is not False:
            yield _finding(program, event, cuda, sure=used is True)


def _event_kind(program: Program, module: Module, call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute) and call.func.attr in {"map", "filter"}:
        place = resolved_argument(program, Call(module, call, ""), "num_proc")
        return "map" if place is not None and _forks(program, place) is not False else ""
    return "cuda" if touches_cuda(program, module, call) else ""


def _uses_cuda(program: Program, event: Event) -> bool | None:
    """Whether the mapped function uses CUDA in the children; None where its code is unknown."""
    assert isinstance(event.node, ast.Call)
    function = argument(event.node, "function", 0)
    given = argument(event.node, "fn_kwargs")
    if given is not None and any(
        is_on_gpu(program, event.module, node) for node in ast.walk(given)
    ):
        return True
    return uses_cuda(program, Expression(event.module, function)) if function is not None else None


def _forks(program: Program, place: Expression) -> bool | None:
    """Whether this number of processes forks; None if it or the version is unknown."""
    value = program.value(place.module, place.node)
    if value is UNKNOWN:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        return False
    return True if value > 1 else _pool_of_one_forks(program)


def _pool_of_one_forks(program: Program) -> bool | None:
    """From datasets 4.1 on num_proc=1 is a pool of one; before, it ran in the process."""
    match = re.match(r"(\d+)\.(\d+)", program.around.versions.get("datasets", ""))
    return (int(match[1]), int(match[2])) >= (4, 1) if match is not None else None


def _finding(program: Program, event: Event, cuda: Event, *, sure: bool) -> Finding:
    assert isinstance(event.node, ast.Call)
    place = resolved_argument(program, Call(event.module, event.node, ""), "num_proc")
    number = program.value(place.module, place.node) if place is not None else UNKNOWN
    where = cuda.module.line_of(cuda.node, event.module)
    message = (
        f"This forks workers (num_proc={number if number is not UNKNOWN else '…'}) after"
        f" {cuda.module.source_of(cuda.node)} in {where} has initialised CUDA."
    )
    if number == 1:
        version = program.around.versions.get("datasets")
        message += (
            f" The installed datasets {version} forks for 1, too."
            if version
            else " With 1, datasets forks from 4.1 on."
        )
    return RULE.finding(
        event.module,
        event.node,
        message,
        confidence=0.4 if not sure else 0.7 if place and _forks(program, place) else 0.55,
    )
