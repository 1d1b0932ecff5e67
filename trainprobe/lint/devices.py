"""Code that creates a CUDA context in the process that runs it."""

from __future__ import annotations

import ast

from trainprobe.lint.calls import reaches
from trainprobe.lint.expressions import Expression, class_of_object, origin
from trainprobe.lint.modules import Module, method_called, receiver_of
from trainprobe.lint.program import Program, remembered
from trainprobe.lint.values import argument

# What initialises CUDA in the process (torch/cuda/__init__.py: these go through _lazy_init);
# is_available and device_count do not.
TOUCHES = {
    f"torch.cuda.{name}"
    for name in (
        "set_device",
        "init",
        "current_device",
        "synchronize",
        "get_device_name",
        "get_device_properties",
        "get_device_capability",
        "mem_get_info",
        "current_stream",
        "Stream",
        "Event",
        "ipc_collect",
        "get_rng_state",
    )
}
MAKES = set(
    """
    zeros ones empty rand randn randint tensor as_tensor full arange eye linspace
    """.split()
)


def device_kinds(program: Program, module: Module, node: ast.expr, depth: int = 0) -> set[str]:
    """The devices ("cuda", "cpu", "mps", "cuda:0") that an expression may name; maybe none."""
    if depth > 6:
        return set()
    known: dict[ast.AST, set[str]] = program.memory.setdefault("device kinds", {})
    if node not in known:
        known[node] = set()  # ends circles
        known[node] = _device_kinds(program, module, node, depth)
    return known[node]


def _device_kinds(program: Program, module: Module, node: ast.expr, depth: int) -> set[str]:
    if isinstance(node, ast.IfExp):
        return device_kinds(program, module, node.body, depth + 1) | device_kinds(
            program, module, node.orelse, depth + 1
        )
    if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
        text = str(node.values[0].value)
        return {text + "?"} if text.startswith(("cuda:", "mps:")) else set()
    if isinstance(node, ast.Call):
        called = program.dotted(module, node.func)
        if (
            called == "torch.device"
            and (entry := argument(node, "type", 0) or argument(node, "device", 0)) is not None
        ):
            index = argument(node, "index", 1)
            inner = device_kinds(program, module, entry, depth + 1)
            return {f"{item}:?" for item in inner} if index is not None else inner
        function = program.function(called)
        if function is not None and 0 < len(function.returns) <= 4:
            found: set[str] = set()
            for returned in function.returns:
                if returned.value is not None:
                    found |= device_kinds(program, function.module, returned.value, depth + 1)
            return found
        return set()
    if (
        isinstance(node, ast.Attribute)
        and (holder := program.function(program.dotted(module, node))) is not None
    ):
        # a property
        results = [item.value for item in holder.returns[:4] if item.value is not None]
        return {
            kind
            for item in results
            for kind in device_kinds(program, holder.module, item, depth + 1)
        }
    value = program.value(module, node)
    if isinstance(value, str):
        return {value} if value.split(":")[0] in {"cuda", "cpu", "mps"} else set()
    behind = origin(program, module, node)
    return (
        device_kinds(program, behind.module, behind.node, depth + 1)
        if behind.node is not node
        else set()
    )


def names_cuda(program: Program, place: Expression | None) -> bool:
    return place is not None and any(
        kind.startswith("cuda") for kind in device_kinds(program, place.module, place.node)
    )


def device_of_call(program: Program, module: Module, call: ast.Call) -> Expression | None:
    """Return the device that a call moves to or makes its tensor on."""
    name = method_called(call)
    if name == "to":
        item = argument(call, "device", 0)
    elif name in MAKES and program.dotted(module, call.func).startswith("torch."):
        item = argument(call, "device")
    else:
        return None
    return Expression(module, item) if item is not None else None


@remembered
def touches_cuda(program: Program, module: Module, call: ast.Call) -> bool:
    """Whether the call itself creates a CUDA context or puts something on a GPU."""
    name = method_called(call)
    if name == "cuda" and len(call.args) <= 1:
        return program.dotted(module, call.func) != "torch.cuda"
    return (
        names_cuda(program, device_of_call(program, module, call))
        or program.dotted(module, call.func) in TOUCHES
    )


def uses_cuda(program: Program, place: Expression) -> bool | None:
    """Whether calling what an expression names uses CUDA or an object that was put on a GPU; None
    where its code is unknown.
    """
    behind = origin(program, *place)
    nodes = list(ast.walk(behind.node))
    cls = class_of_object(program, place)
    called = [
        program.function(program.dotted(*behind)),
        program.names.method(cls, "__call__") if cls is not None else None,
        *(program.called(behind.module, node) for node in nodes if isinstance(node, ast.Call)),
    ]
    functions = reaches(program, *(function for function in called if function is not None))
    if any(is_on_gpu(program, behind.module, node) for node in nodes) or any(
        is_on_gpu(program, function.module, node)
        for function in functions
        for node in ast.walk(function.node)
    ):
        return True
    return False if functions or isinstance(behind.node, ast.Lambda) else None


def is_on_gpu(program: Program, module: Module, node: ast.AST) -> bool:
    """Whether a node is a call that uses CUDA, or the name of an object that was put on a GPU."""
    if isinstance(node, ast.Call):
        return touches_cuda(program, module, node)
    if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return False
    if _owner(program, module, node) in _moved(program):
        return True
    made = origin(program, module, node)
    return any(
        touches_cuda(program, made.module, each)
        for each in ast.walk(made.node)
        if isinstance(each, ast.Call)
    )


@remembered
def _moved(program: Program) -> set[tuple[object, str]]:
    """What statements such as `model.cuda()` put on a GPU in place."""
    return {
        _owner(program, module, moved)
        for module in program.modules.values()
        for statement in module.of(ast.Expr)
        if isinstance(moved := receiver_of(statement.value, "cuda", "to"), ast.Name | ast.Attribute)
        and touches_cuda(program, module, statement.value)  # type: ignore[arg-type]
    }


def _owner(program: Program, module: Module, node: ast.Name | ast.Attribute) -> tuple[object, str]:
    """The scope that holds a name, or the class in which an attribute of `self` stands."""
    if isinstance(node, ast.Name):
        return program.names.lookup(module, node.id, node)[0], node.id
    return module.class_of(node), module.source_of(node)
