"""Ranks with NCCL that all use the GPU that happens to be current: GPU 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import ranks
from trainprobe.lint.devices import device_kinds, device_of_call
from trainprobe.lint.fixing import insert_line
from trainprobe.lint.mentions import is_imported, is_named
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.rewrites import name_of, stands_alone, with_import
from trainprobe.lint.scenes import Call, among, calls_of, given, is_open, job
from trainprobe.lint.values import argument

ID = "missing-set-device"
CAUSE = "wrong-device-binding"
WHY = "Each process starts with GPU 0 as its current device. Without set_device all ranks of a node put their model there: 'Duplicate GPU detected', or out of memory."
FIX = Fix("Before init_process_group: torch.cuda.set_device(int(os.environ['LOCAL_RANK'])).")
SETS = ("set_device", "set_device_index", "CUDA_VISIBLE_DEVICES")
PACKAGES = ("accelerate", "lightning", "pytorch_lightning", "lightning_fabric", "deepspeed")


def find(program: Program) -> Iterator[Finding]:
    for call in calls_of(program, "torch.distributed.init_process_group"):
        backend = given(program, call.module, call.node, "backend", 0)
        if backend is None or given(program, call.module, call.node, "device_id") is not None or is_open(program, call.module, call.node):
            spread = [word for word in call.node.keywords if word.arg is None]
            backend = given(program, call.module, call.node, "backend", 0) if spread else None
        if backend is None or given(program, call.module, call.node, "device_id") is not None:
            continue
        chosen = backend.node.body if isinstance(backend.node, ast.IfExp) else backend.node  # `"nccl" if torch.cuda.is_available() else "gloo"`
        value = program.value(backend.module, chosen)
        if not isinstance(value, str) or "nccl" not in value:
            continue
        modules = job(program, call.module)
        if is_named(program, modules, *SETS) or is_imported(program, modules, *PACKAGES) or among(program, call.module, "torch.cuda.device"):
            continue
        used = [use for one in modules for use in _uses(program, one)]
        if used and all(used):
            says = "Nothing binds this rank to its own GPU, and the job puts tensors on the current one."
            yield program.finding(ID, CAUSE, call.module, call.node, says=says, why=WHY, confidence=0.75, fix=_fix(program, call))


def _fix(program: Program, call: Call) -> Fix:
    """Bind the rank ahead of init_process_group, where a launcher sets LOCAL_RANK and tensors go to the current GPU."""
    module, statement = call.module, call.module.statement_of(call.node)
    ranked = any(argument(call.node, name) is not None for name in ("rank", "world_size", "store"))
    spawned = ranked or among(program, module, "torch.multiprocessing.spawn") or any(_names_first(program, one) for one in job(program, module))
    torch = name_of(module, "torch", statement.lineno)
    if spawned or torch != "torch" or module.is_notebook or not isinstance(statement, ast.Expr) or not stands_alone(module, statement):
        return FIX
    imported = with_import(module, "os", statement.lineno)
    if imported is None:
        return FIX
    bound = 'if torch.cuda.is_available():\n    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))'
    return Fix(FIX.says, (*imported, insert_line(module, statement, bound)), safe=True)


def _names_first(program: Program, module: Module) -> bool:
    """Whether GPU 0 is named as such, which no set_device changes."""
    places = (device_of_call(program, module, call) for call in module.of(ast.Call))
    return any("cuda:0" in device_kinds(program, place.module, place.node) for place in places if place is not None)


def _uses(program: Program, module: Module) -> Iterator[bool]:
    """For each place that puts something on a GPU: whether it is the same GPU for all ranks."""
    for call in module.of(ast.Call):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name == "cuda" and program.dotted(module, call.func) != "torch.cuda":
            yield not call.args and not call.keywords
            continue
        place = device_of_call(program, module, call)
        if place is None:
            continue
        kinds = device_kinds(program, place.module, place.node)
        if any(kind.startswith("cuda") for kind in kinds):
            yield kinds <= {"cuda", "cuda:0", "cpu"}
        elif not kinds and (ranks.kind_of(program, place.module, place.node) or "rank" in place.module.source_of(place.node)):
            yield False


RULE = Rule(ID, CAUSE, "No GPU of its own for each rank", WHY, 0.75, find)
