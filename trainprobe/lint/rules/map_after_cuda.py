"""`datasets.map(num_proc=…)` after CUDA was touched: its children are forked, and CUDA cannot be used in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint.devices import touches_cuda
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.order import Event, Order, exclusive
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import Place, given
from trainprobe.lint.values import UNKNOWN

ID = "map-after-cuda"
CAUSE = "cuda-in-forked-worker"
WHY = (
    "map and filter with num_proc fork this process (with 1 from datasets 4.1 on, where 1 is a pool of one; None does not fork). "
    "A CUDA context does not survive a fork: the first use in a child fails with 'Cannot re-initialize CUDA in forked subprocess'."
)
FIX = Fix("Prepare the data before anything touches CUDA, or in a script of its own; or leave num_proc away.")


def find(program: Program) -> Iterator[Finding]:
    if not any("num_proc" in module.text for module in program.modules.values()):
        return
    told: set[ast.AST] = set()
    for trace in Order(program, _sees).traces():
        touched: list[Event] = []
        for event in trace:
            if event.kind == "cuda":
                touched.append(event)
            elif event.node not in told:
                before = [one for one in touched if one.module is not event.module or not exclusive(event.module, one.node, event.node)]
                if before:
                    told.add(event.node)
                    yield _finding(program, event, before[0])


def _sees(program: Program, module: Module, call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute) and call.func.attr in {"map", "filter"}:
        place = given(program, module, call, "num_proc")
        return "map" if place is not None and _forks(program, place) is not False else ""
    return "cuda" if touches_cuda(program, module, call) else ""


def _forks(program: Program, place: Place) -> bool | None:
    """Whether this number of processes forks; None where that is not known: the number, or for 1 the version of datasets."""
    value = program.value(place.module, place.node)
    if value is UNKNOWN:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        return False
    return True if value > 1 else _one_forks(program)


def _one_forks(program: Program) -> bool | None:
    """The rule of the installed version: from datasets 4.1 on num_proc=1 is a pool of one, before it ran in the process itself."""
    told = re.match(r"(\d+)\.(\d+)", program.around.versions.get("datasets", ""))
    return (int(told[1]), int(told[2])) >= (4, 1) if told is not None else None


def _finding(program: Program, event: Event, cuda: Event) -> Finding:
    assert isinstance(event.node, ast.Call)
    place = given(program, event.module, event.node, "num_proc")
    number = program.value(place.module, place.node) if place is not None else UNKNOWN
    where = f"line {getattr(cuda.node, 'lineno', 0)}" + ("" if cuda.module is event.module else f" of {cuda.module.path.rpartition('/')[2]}")
    says = f"This forks workers (num_proc={number if number is not UNKNOWN else '…'}) after {cuda.module.source_of(cuda.node)} in {where} has touched CUDA."
    if number == 1:
        version = program.around.versions.get("datasets")
        says += f" The installed datasets {version} forks for 1, too." if version else " With 1, datasets forks from 4.1 on."
    return program.finding(
        ID, CAUSE, event.module, event.node, says=says, why=WHY, confidence=0.7 if place is not None and _forks(program, place) else 0.55, fix=FIX
    )


RULE = Rule(ID, CAUSE, "Forked workers after CUDA was touched", WHY, 0.7, find)
