"""What Apple's MPS backend cannot do: 64-bit floats and process groups."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.devices import device_kinds
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import calls_of, job, origin
from trainprobe.lint.values import argument

ID = "mps-hazard"
CAUSE = "mps-backend"
WHY = "The MPS framework has no 64-bit floats: 'Cannot convert a MPS Tensor to float64 dtype'."
GROUPS = "torch.distributed has no backend for MPS tensors: collectives on them fail."
DOUBLES = {"torch.float64", "torch.double", "numpy.float64", "numpy.double"}


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        if not ("float64" in module.text or "double" in module.text) or not any('"mps' in one.text or "'mps" in one.text for one in job(program, module)):
            continue
        for call in module.of(ast.Call):
            if _is_double_on_mps(program, module, call):
                says = "A 64-bit float goes to an MPS device here."
                yield program.finding(ID, CAUSE, module, call, says=says, why=WHY, confidence=0.75, fix=Fix("Use torch.float32 on MPS."))
    for start in calls_of(program, "torch.distributed.init_process_group"):
        if any(_is_only_mps(program, one) for one in job(program, start.module)):
            says = "This job puts its model on an MPS device and joins a process group."
            yield program.finding(
                ID, CAUSE, start.module, start.node, says=says, why=GROUPS, confidence=0.65, fix=Fix("Train in one process on MPS, or on the CPU with gloo.")
            )


def _is_double_on_mps(program: Program, module: Module, call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name == "double" and isinstance(call.func, ast.Attribute) and not call.args:
        moved = origin(program, module, call.func.value)
        return isinstance(moved.node, ast.Call) and "mps" in _device(program, moved.module, moved.node)
    if "mps" not in _device(program, module, call):
        return False
    if any(program.dotted(module, one) in DOUBLES for one in (*call.args, *(word.value for word in call.keywords))):
        return True
    if name == "to" and isinstance(call.func, ast.Attribute) and argument(call, "dtype", 1) is None:
        return any(
            isinstance(word, ast.keyword) and word.arg == "dtype" and program.dotted(module, word.value) in DOUBLES for word in ast.walk(call.func.value)
        )
    return False


def _device(program: Program, module: Module, call: ast.Call) -> set[str]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    told = argument(call, "device", 0 if name == "to" else None)
    return device_kinds(program, module, told) if told is not None else set()


def _is_only_mps(program: Program, module: Module) -> bool:
    """Whether something goes to MPS whatever the machine."""
    if "mps" not in module.text:
        return False
    return any(isinstance(call.func, ast.Attribute) and call.func.attr == "to" and _device(program, module, call) == {"mps"} for call in module.of(ast.Call))


RULE = Rule(ID, CAUSE, "What MPS cannot do", WHY, 0.75, find)
