"""The number of the rank in the whole job, taken for the number of a GPU of the node."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.expressions import origin
from trainprobe.lint.jobs import DDP, job_modules
from trainprobe.lint.mentions import is_named
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.values import argument

RULE = Rule(
    id="global-rank-as-gpu",
    cause="wrong-device-binding",
    title="The rank in the whole job taken for the number of a GPU",
    why=(
        "GPUs are numbered on each node from 0, ranks through all nodes. On the second node rank 8"
        " asks for GPU 8, which is not there: invalid device ordinal."
    ),
    fix="Take int(os.environ['LOCAL_RANK']) for devices, as elsewhere in this program.",
    confidence=0.6,
)

SETS = "torch.cuda.set_device"
GLOBAL = {"torch.distributed.get_rank"}
READS = {"os.environ", "os.environ.get", "os.getenv"}


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        if "device_ids" not in module.text and "set_device" not in module.text:
            continue
        for call in module.of(ast.Call):
            name = program.dotted(module, call.func)
            number = _number_of(name, call)
            if number is None or not _is_global(program, module, number):
                continue
            # what never asks for the local rank is meant for one node: a script, or a whole job
            asked = job_modules(program, module) if name == DDP else [module]
            if is_named(program, asked, "LOCAL_RANK"):
                message = (
                    f"{module.source_of(number)} counts the ranks of all nodes, and is taken for a"
                    " GPU of this one."
                )
                yield RULE.finding(module, call, message)


def _number_of(name: str, call: ast.Call) -> ast.expr | None:
    if name == SETS:
        return argument(call, "device", 0)
    if name == DDP:
        match argument(call, "device_ids", 1):
            case ast.List(elts=[number]):
                return number
    return None


def _is_global(program: Program, module: Module, number: ast.expr) -> bool:
    made = origin(program, module, number)
    node = made.node
    while isinstance(node, ast.Call) and program.dotted(made.module, node.func) == "int":
        if not node.args:
            return False
        node = node.args[0]
    match node:
        case ast.Call(func=func, args=[]):
            return program.dotted(made.module, func) in GLOBAL
        case ast.Call(func=func, args=[ast.Constant(value="RANK"), *_]):
            return program.dotted(made.module, func) in READS
        case ast.Subscript(value=mapping, slice=ast.Constant(value="RANK")):
            return program.dotted(made.module, mapping) in READS
    return False
