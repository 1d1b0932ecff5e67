"""Sharded values: DTensors, and the parameters of a model after `fully_shard`.

Tried with torch 2.13 on two ranks: a reduction (`norm`, `sum`, `any`) leaves a partial result on
each rank without communication. `item()`, `float()` and `bool()` of it read this rank's part.
Comparing it, adding to it, a root or a power of it, and `full_tensor()`, make all ranks meet.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Literal

from trainprobe.lint.calls import call_sites
from trainprobe.lint.modules import Function, Module, receiver_of
from trainprobe.lint.program import Program, remembered
from trainprobe.lint.values import argument
from trainprobe.lint.wrappers import is_fully_shard, wrapped

Kind = Literal["", "sharded", "partial"]
REDUCES = set(
    """
    norm vector_norm sum mean max min prod any all std var amax amin count_nonzero isfinite_all
    """.split()
)
LOCAL = set(
    """
    to_local full_tensor redistribute numel nelement size dim element_size item tolist numpy stride
    ndimension
    """.split()
)
KEEPS = set(
    """
    detach clone float double half bfloat16 to cpu cuda mul div neg view reshape squeeze stack cat
    """.split()
)
NORMS = set(
    """
    torch.nn.utils.clip_grad_norm_ torch.nn.utils.clip_grad.clip_grad_norm_
    torch.nn.utils.get_total_norm torch.nn.utils.clip_grad.get_total_norm
    """.split()
)
MAKES = {"distribute_tensor", "from_local", "zeros", "ones", "full", "rand", "randn", "empty"}
PLACES = ("torch.distributed.tensor.", "torch.distributed._tensor.")
DEEPEST = 8


@remembered
def is_used(program: Program) -> bool:
    """Whether anything in the program can be sharded so."""
    return is_used_by(list(program.modules.values()))


def is_used_by(modules: list[Module]) -> bool:
    """Whether one of the modules names what shards so."""
    names = ("fully_shard", "DTensor", "distribute_tensor")
    return any(name in module.text for module in modules for name in names)


def kind_of(program: Program, module: Module, node: ast.expr, depth: int = 0) -> Kind:
    """What an expression is on each rank: "sharded", a "partial" result, or ""."""
    known: dict[ast.AST, Kind] = program.memory.setdefault("sharded kinds", {})
    if node in known or depth > DEEPEST:
        return known.get(node, "")
    known[node] = ""  # ends circles
    known[node] = _kind(program, module, node, depth + 1)
    return known[node]


def meets(program: Program, module: Module, node: ast.expr) -> bool:
    """Whether an operator on a partial result is a collective."""
    if isinstance(node, ast.Compare):
        return any(
            kind_of(program, module, comparator) == "partial"
            for comparator in (node.left, *node.comparators)
        ) and not any(isinstance(item, ast.Is | ast.IsNot) for item in node.ops)
    if isinstance(node, ast.BinOp) and isinstance(
        node.op, ast.Add | ast.Sub | ast.Pow | ast.FloorDiv | ast.Mod
    ):
        return any(kind_of(program, module, item) == "partial" for item in (node.left, node.right))
    return False


def clips(program: Program, module: Module, call: ast.Call) -> bool:
    """Whether a call computes a norm over the parameters of a model under `fully_shard`."""
    if program.dotted(module, call.func) not in NORMS or not call.args:
        return False
    model = receiver_of(call.args[0], "parameters")
    return model is not None and is_model(program, module, model)


def is_model(program: Program, module: Module, node: ast.expr, depth: int = 0) -> bool:
    """Whether an expression is a model to which `fully_shard` was applied anywhere."""
    if depth > DEEPEST:
        return False
    if "fsdp2" in wrapped(program, module, node):
        return True
    if isinstance(node, ast.Call):
        function = program.called(module, node)
        return function is not None and any(
            returned.value is not None
            and is_model(program, function.module, returned.value, depth + 1)
            for returned in function.returns[:4]
        )
    if isinstance(node, ast.Attribute):
        return (
            is_model(program, module, node.value, depth + 1)
            if not isinstance(node.value, ast.Name) or node.value.id not in {"self", "cls"}
            else False
        )
    if not isinstance(node, ast.Name):
        return False
    if any(_shards(program, module, call, node.id, depth) for call in _calls_with(module, node)):
        return True
    for binding in program.names.bindings(module, node)[:6]:
        if (
            binding.kind == "value"
            and isinstance(binding.value, ast.Call)
            and is_model(program, module, binding.value, depth + 1)
        ):
            return True
        if binding.kind == "param" and (holder := module.function_of(node)) is not None:
            return any(
                is_model(program, where, found, depth + 1)
                for where, found in _arguments(program, holder, node.id)
            )
    return False


def _calls_with(module: Module, node: ast.Name) -> list[ast.Call]:
    holder = module.function_of(node)
    return holder.calls if holder is not None else module.top_calls


def _shards(program: Program, module: Module, call: ast.Call, name: str, depth: int) -> bool:
    """Whether a call of the project's gives `name` to `fully_shard`."""
    function = (
        program.called(module, call)
        if any(isinstance(item, ast.Name) and item.id == name for item in call.args)
        else None
    )
    if function is None or function.name == "__init__" or depth > 2:
        return False
    at = next(
        index
        for index, item in enumerate(call.args)
        if isinstance(item, ast.Name) and item.id == name
    ) + (1 if function.cls is not None else 0)
    inner = function.parameters[at] if at < len(function.parameters) else ""
    return any(
        isinstance(item.args[0], ast.Name)
        and item.args[0].id == inner
        and is_fully_shard(program, function.module, item)
        for item in function.calls
        if item.args
    )


def _arguments(program: Program, holder: Function, name: str) -> list[tuple[Module, ast.expr]]:
    if name not in holder.parameters:
        return []
    at = holder.parameters.index(name) - (1 if holder.cls is not None else 0)
    sites = call_sites(program).get(holder, [])[:8]
    return [
        (where, item) for where, call in sites if (item := argument(call, name, at)) is not None
    ]


def _kind(program: Program, module: Module, node: ast.expr, depth: int) -> Kind:  # noqa: PLR0911 - one return per kind of expression
    if isinstance(node, ast.Name):
        return _name(program, module, node, depth)
    if isinstance(node, ast.Call):
        return _call(program, module, node, depth)
    if isinstance(node, ast.Attribute):
        if node.attr in {"weight", "bias"} and is_model(program, module, node.value):
            return "sharded"
        return (
            kind_of(program, module, node.value, depth)
            if node.attr in {"grad", "data", "T", "mT"}
            else ""
        )
    if isinstance(node, ast.Subscript):
        value = node.value
        model = receiver_of(value, "state_dict")
        if model is not None and is_model(program, module, model):
            return "sharded"
        return kind_of(program, module, value, depth)
    if isinstance(node, ast.BinOp):
        kinds = {kind_of(program, module, item, depth) for item in (node.left, node.right)}
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
        return _first(kind_of(program, module, element, depth) for element in node.elts[:8])
    return ""


def _name(program: Program, module: Module, node: ast.Name, depth: int) -> Kind:
    latest = program.names.latest(module, node)
    for binding in [latest] if latest is not None else []:
        if binding.kind == "value" and binding.value is not None:
            return kind_of(program, module, binding.value, depth)
        if binding.kind == "other" and isinstance(binding.node, ast.For | ast.comprehension):
            return _element(program, module, binding.node.iter, depth)
        if binding.kind == "param" and (holder := module.function_of(node)) is not None:
            arguments = _arguments(program, holder, node.id)
            return _first(kind_of(program, where, found, depth) for where, found in arguments)
    return ""


def _first(kinds: Iterable[Kind]) -> Kind:
    return next(filter(None, kinds), "")


def _element(program: Program, module: Module, node: ast.expr, depth: int) -> Kind:
    """The element of an iteration over `model.parameters()`, a state dict's values or such."""
    model = receiver_of(node, "parameters", "named_parameters")
    items = receiver_of(node, "values", "items")
    if items is not None:
        model = receiver_of(items, "state_dict")
    if model is not None or items is not None:
        return "sharded" if model is not None and is_model(program, module, model) else ""
    if (
        isinstance(node, ast.Call)
        and program.dotted(module, node.func) in {"enumerate", "list", "tqdm.tqdm", "filter"}
        and node.args
    ):
        return _element(program, module, node.args[-1], depth)
    return (
        kind_of(program, module, node, depth) if isinstance(node, ast.Name | ast.ListComp) else ""
    )


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
        values = (
            [returned.value for returned in function.returns[:2] if returned.value is not None]
            if function is not None and function.name != "__init__"
            else []
        )
        return next(
            (
                kind
                for value in values
                if function is not None
                and (kind := kind_of(program, function.module, value, depth))
            ),
            "",
        )
    if last in LOCAL:
        return ""
    if kind == "sharded":
        return "partial" if last in REDUCES else "sharded"
    return "partial" if kind == "partial" and last in KEEPS else ""
