"""What Apple's MPS backend cannot do: 64-bit floats and process groups."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.calls import calls_to
from trainprobe.lint.devices import device_kinds
from trainprobe.lint.expressions import origin
from trainprobe.lint.jobs import job_modules
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module, method_called
from trainprobe.lint.program import Program
from trainprobe.lint.values import argument

RULE = Rule(
    id="mps-hazard",
    cause="mps-backend",
    title="What MPS does not support",
    why="The MPS framework has no 64-bit floats: 'Cannot convert a MPS Tensor to float64 dtype'.",
    confidence=0.75,
)


GROUPS = "torch.distributed has no backend for MPS tensors: collectives on them fail."
DOUBLES = {"torch.float64", "torch.double", "numpy.float64", "numpy.double"}


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        if not ("float64" in module.text or "double" in module.text) or not any(
            '"mps' in item.text or "'mps" in item.text for item in job_modules(program, module)
        ):
            continue
        for call in module.of(ast.Call):
            if _is_double_on_mps(program, module, call):
                message = "This puts a 64-bit float on an MPS device."
                yield RULE.finding(module, call, message, fix="Use torch.float32 on MPS.")
    for start in calls_to(program, "torch.distributed.init_process_group"):
        if any(_is_only_mps(program, item) for item in job_modules(program, start.module)):
            message = "This job puts its model on an MPS device and initialises a process group."
            fix = "Train in one process on MPS, or on the CPU with gloo."
            yield RULE.finding(
                start.module, start.node, message, why=GROUPS, confidence=0.65, fix=fix
            )


def _is_double_on_mps(program: Program, module: Module, call: ast.Call) -> bool:
    name = method_called(call)
    if name == "double" and isinstance(call.func, ast.Attribute) and not call.args:
        moved = origin(program, module, call.func.value)
        return isinstance(moved.node, ast.Call) and "mps" in _device(
            program, moved.module, moved.node
        )
    if "mps" not in _device(program, module, call):
        return False
    if any(
        program.dotted(module, item) in DOUBLES
        for item in (*call.args, *(keyword.value for keyword in call.keywords))
    ):
        return True
    if name == "to" and isinstance(call.func, ast.Attribute) and argument(call, "dtype", 1) is None:
        return any(
            isinstance(keyword, ast.keyword)
            and keyword.arg == "dtype"
            and program.dotted(module, keyword.value) in DOUBLES
            for keyword in ast.walk(call.func.value)
        )
    return False


def _device(program: Program, module: Module, call: ast.Call) -> set[str]:
    name = method_called(call)
    item = argument(call, "device", 0 if name == "to" else None)
    return device_kinds(program, module, item) if item is not None else set()


def _is_only_mps(program: Program, module: Module) -> bool:
    """Whether something goes to MPS whatever the machine."""
    if "mps" not in module.text:
        return False
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "to"
        and _device(program, module, call) == {"mps"}
        and not _may_be_another(program, module, call)
        for call in module.of(ast.Call)
    )


def _may_be_another(program: Program, module: Module, call: ast.Call) -> bool:
    """Whether the name of the device has other values too, as `"cuda"` where there is one."""
    item = argument(call, "device", 0)
    return isinstance(item, ast.Name) and len(program.names.bindings(module, item)) > 1
