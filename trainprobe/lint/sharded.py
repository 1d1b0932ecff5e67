"""Values of which each rank holds a part: DTensors, and the parameters of a model after `fully_shard`.

Tried with torch 2.13 on two ranks: a reduction (`norm`, `sum`, `any`) leaves a partial result on each rank without communication. `item()`, `float()`
and `bool()` of it read this rank's part. Comparing it, adding to it, a root or a power of it, and `full_tensor()`, make all ranks meet.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

from trainprobe.lint.collectives import wrapped
from trainprobe.lint.modules import Function, Module
from trainprobe.lint.values import argument

if TYPE_CHECKING:
    from trainprobe.lint.program import Program

Kind = Literal["", "sharded", "partial"]
REDUCES = {"norm", "vector_norm", "sum", "mean", "max", "min", "prod", "any", "all", "std", "var", "amax", "amin", "count_nonzero", "isfinite_all"}
LOCAL = {"to_local", "full_tensor", "redistribute", "numel", "nelement", "size", "dim", "element_size", "item", "tolist", "numpy", "stride", "ndimension"}
KEEPS = {"detach", "clone", "float", "double", "half", "bfloat16", "to", "cpu", "cuda", "mul", "div", "neg", "view", "reshape", "squeeze", "stack", "cat"}
NORMS = {
    "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad.clip_grad_norm_",
    "torch.nn.utils.get_total_norm",
    "torch.nn.utils.clip_grad.get_total_norm",
}
MAKES = {"distribute_tensor", "from_local", "zeros", "ones", "full", "rand", "randn", "empty"}
PLACES = ("torch.distributed.tensor.", "torch.distributed._tensor.")
DEEPEST = 8


def is_used(program: Program) -> bool:
    """Whether anything in the program can be sharded so."""
    known: bool | None = program.memory.get("sharded is used")
    if known is None:
        known = any("fully_shard" in one.text or "DTensor" in one.text or "distribute_tensor" in one.text for one in program.modules.values())
        program.memory["sharded is used"] = known
    return known


def kind_of(program: Program, module: Module, node: ast.expr, depth: int = 0) -> Kind:
    """Say what an expression is on each rank: a part of a tensor ("sharded"), a partial result ("partial"), or neither as far as can be seen."""
    known: dict[ast.AST, Kind] = program.memory.setdefault("sharded kinds", {})
    if node in known or depth > DEEPEST:
        return known.get(node, "")
    known[node] = ""  # ends circles
    known[node] = _kind(program, module, node, depth + 1)
    return known[node]


def meets(program: Program, module: Module, node: ast.expr) -> bool:
    """Whether an operator on a partial result makes all ranks meet."""
    if isinstance(node, ast.Compare):
        return any(kind_of(program, module, one) == "partial" for one in (node.left, *node.comparators)) and not any(
            isinstance(one, ast.Is | ast.IsNot) for one in node.ops
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Pow | ast.FloorDiv | ast.Mod):
        return any(kind_of(program, module, one) == "partial" for one in (node.left, node.right))
    return False


def clips(program: Program, module: Module, call: ast.Call) -> bool:
    """Whether a call takes the norm over the parameters of a model under `fully_shard`."""
    if program.dotted(module, call.func) not in NORMS or not call.args:
        return False
    told = call.args[0]
    return isinstance(told, ast.Call) and isinstance(told.func, ast.Attribute) and told.func.attr == "parameters" and is_model(program, module, told.func.value)


def is_model(program: Program, module: Module, node: ast.expr, depth: int = 0) -> bool:
    """Whether an expression is a model that `fully_shard` has been given, here, in a function that it goes through, or by who calls this one."""
    if depth > DEEPEST:
        return False
    if "fsdp2" in wrapped(program, module, node):
        return True
    if isinstance(node, ast.Call):
        function = program.called(module, node)
        return function is not None and any(one.value is not None and is_model(program, function.module, one.value, depth + 1) for one in function.returns[:4])
    if isinstance(node, ast.Attribute):
        return is_model(program, module, node.value, depth + 1) if not isinstance(node.value, ast.Name) or node.value.id not in {"self", "cls"} else False
    if not isinstance(node, ast.Name):
        return False
    if any(_shards(program, module, call, node.id, depth) for call in _calls_beside(module, node)):
        return True
    for binding in program.names.bindings(module, node)[:6]:
        if binding.kind == "value" and isinstance(binding.value, ast.Call) and is_model(program, module, binding.value, depth + 1):
            return True
        if binding.kind == "param" and (holder := module.function_of(node)) is not None:
            return any(is_model(program, where, told, depth + 1) for where, told in _given(program, holder, node.id))
    return False


def _calls_beside(module: Module, node: ast.Name) -> list[ast.Call]:
    holder = module.function_of(node)
    return holder.calls if holder is not None else module.top_calls


def _shards(program: Program, module: Module, call: ast.Call, name: str, depth: int) -> bool:
    """Whether a call of the project's gives `name` to `fully_shard`."""
    function = program.called(module, call) if any(isinstance(one, ast.Name) and one.id == name for one in call.args) else None
    if function is None or function.name == "__init__" or depth > 2:
        return False
    at = next(index for index, one in enumerate(call.args) if isinstance(one, ast.Name) and one.id == name) + (1 if function.cls is not None else 0)
    inner = function.parameters[at] if at < len(function.parameters) else ""
    return any(
        isinstance(one.args[0], ast.Name) and one.args[0].id == inner and program.dotted(function.module, one.func).endswith("fully_shard")
        for one in function.calls
        if one.args
    )


def _given(program: Program, holder: Function, name: str) -> list[tuple[Module, ast.expr]]:
    from trainprobe.lint.calls import calls_of

    if name not in holder.parameters:
        return []
    at = holder.parameters.index(name) - (1 if holder.cls is not None else 0)
    sites = calls_of(program).get(holder, [])[:8]
    return [(where, told) for where, call in sites if (told := argument(call, name, at)) is not None]


def _kind(program: Program, module: Module, node: ast.expr, depth: int) -> Kind:  # noqa: PLR0911 - one return per kind of expression
    if isinstance(node, ast.Name):
        return _name(program, module, node, depth)
    if isinstance(node, ast.Call):
        return _call(program, module, node, depth)
    if isinstance(node, ast.Attribute):
        if node.attr in {"weight", "bias"} and is_model(program, module, node.value):
            return "sharded"
        return kind_of(program, module, node.value, depth) if node.attr in {"grad", "data", "T", "mT"} else ""
    if isinstance(node, ast.Subscript):
        held = node.value
        if (
            isinstance(held, ast.Call)
            and isinstance(held.func, ast.Attribute)
            and held.func.attr == "state_dict"
            and is_model(program, module, held.func.value)
        ):
            return "sharded"
        return kind_of(program, module, held, depth)
    if isinstance(node, ast.BinOp):
        kinds = {kind_of(program, module, node.left, depth), kind_of(program, module, node.right, depth)}
        if "sharded" in kinds:
            return "sharded"
        return "partial" if "partial" in kinds and isinstance(node.op, ast.Mult | ast.Div) else ""
    if isinstance(node, ast.Compare):
        return "sharded" if kind_of(program, module, node.left, depth) == "sharded" else ""
    if isinstance(node, ast.UnaryOp):
        return kind_of(program, module, node.operand, depth)
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return kind_of(program, module, node.elt, depth)
    if isinstance(node, ast.List | ast.Tuple):
        return next((kind for one in node.elts[:8] if (kind := kind_of(program, module, one, depth))), "")
    return ""


def _name(program: Program, module: Module, node: ast.Name, depth: int) -> Kind:
    latest = program.names.latest(module, node)
    for binding in [latest] if latest is not None else []:
        if binding.kind == "value" and binding.value is not None:
            return kind_of(program, module, binding.value, depth)
        if binding.kind == "other" and isinstance(binding.node, ast.For | ast.comprehension):
            return _element(program, module, binding.node.iter, depth)
        if binding.kind == "param" and (holder := module.function_of(node)) is not None:
            return next((kind for where, told in _given(program, holder, node.id) if (kind := kind_of(program, where, told, depth))), "")
    return ""


def _element(program: Program, module: Module, node: ast.expr, depth: int) -> Kind:
    """The elements of `model.parameters()`, `model.named_parameters()`, `model.state_dict().values()`, or of a list of such."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in {"parameters", "named_parameters"}:
            return "sharded" if is_model(program, module, node.func.value) else ""
        if node.func.attr in {"values", "items"}:
            held = node.func.value
            made = isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) and held.func.attr == "state_dict"
            return "sharded" if made and is_model(program, module, held.func.value) else ""  # type: ignore[attr-defined]
    if isinstance(node, ast.Call) and program.dotted(module, node.func) in {"enumerate", "list", "tqdm.tqdm", "filter"} and node.args:
        return _element(program, module, node.args[-1], depth)
    return kind_of(program, module, node, depth) if isinstance(node, ast.Name | ast.ListComp) else ""


def _call(program: Program, module: Module, node: ast.Call, depth: int) -> Kind:
    name = program.dotted(module, node.func)
    if name.startswith(PLACES):
        return "sharded" if name.rpartition(".")[2] in MAKES else ""
    if clips(program, module, node):
        return "partial"
    last = name.rpartition(".")[2] if name else getattr(node.func, "attr", "")
    if last in LOCAL:
        return ""
    if name.startswith("torch.") and "()" not in name:
        kind = kind_of(program, module, node.args[0], depth) if node.args else ""
    elif isinstance(node.func, ast.Attribute):
        kind, last = kind_of(program, module, node.func.value, depth), node.func.attr
    else:
        function = program.function(name)
        values = [one.value for one in function.returns[:2] if one.value is not None] if function is not None and function.name != "__init__" else []
        return next((kind for one in values if function is not None and (kind := kind_of(program, function.module, one, depth))), "")
    if last in LOCAL:
        return ""
    if kind == "sharded":
        return "partial" if last in REDUCES else "sharded"
    return "partial" if kind == "partial" and last in KEEPS else ""
