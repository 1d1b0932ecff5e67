"""A program's data loaders: their workers, start method and data set's class."""

from __future__ import annotations

import ast
from typing import Any

from trainprobe.lint.calls import Call, calls_to, class_and_bases, reaches
from trainprobe.lint.expressions import (
    Expression,
    argument_value,
    class_of_object,
    has_unknown_arguments,
    origin,
    resolved_argument,
)
from trainprobe.lint.jobs import calls_in_job
from trainprobe.lint.modules import Class, Function, Module
from trainprobe.lint.program import Program
from trainprobe.lint.values import UNKNOWN

LOADER = "torch.utils.data.DataLoader"
DATASETS = set(
    """
    torch.utils.data.Dataset torch.utils.data.IterableDataset torch.utils.data.dataset.Dataset
    torch.utils.data.dataset.IterableDataset torchvision.datasets.VisionDataset
    """.split()
)

PASSES = set(
    """
    enumerate tqdm.tqdm tqdm.auto.tqdm itertools.islice ~tqdm iter zip itertools.cycle
    """.split()
)


def loaders(program: Program) -> list[Call]:
    return calls_to(program, LOADER)


def workers(program: Program, call: Call) -> Any:
    """Return the number of workers of a loader: a number, UNKNOWN, or 0 where none is given."""
    place = resolved_argument(program, call, "num_workers", 5)
    if place is None:
        return UNKNOWN if has_unknown_arguments(program, call) else 0
    value = program.value(place.module, place.node)
    if value is UNKNOWN:
        behind = origin(program, place.module, place.node)
        value = program.value(behind.module, behind.node)
    return value


def has_workers(program: Program, call: Call) -> bool:
    """Whether the loader has workers: a number above 0, or one set elsewhere."""
    number = workers(program, call)
    return (isinstance(number, int) and number > 0) or (
        number is UNKNOWN and resolved_argument(program, call, "num_workers", 5) is not None
    )


def makes_own_batches(program: Program, call: Call) -> bool:
    """Whether no other batch sampler and no unseen argument decides about the batches."""
    return (
        not has_unknown_arguments(program, call)
        and resolved_argument(program, call, "batch_sampler", 4) is None
    )


def start_method(program: Program, call: Call) -> str:
    """Return "fork", "spawn", "forkserver", or "" where the platform's default holds."""
    place = resolved_argument(program, call, "multiprocessing_context")
    if place is not None:
        value = program.value(place.module, place.node)
        if isinstance(value, str):
            return value
        behind = origin(program, place.module, place.node)
        if isinstance(behind.node, ast.Call) and behind.node.args:
            value = program.value(behind.module, behind.node.args[0])
        return value if isinstance(value, str) else "?"
    return default_method(program, call)


def default_method(program: Program, call: Call) -> str:
    """Return the method that `set_start_method` sets in the job of a call, "" where none does."""
    for name in ("multiprocessing.set_start_method", "torch.multiprocessing.set_start_method"):
        for item in calls_in_job(program, call.module, name):
            value = argument_value(program, item, "method", 0)
            return value if isinstance(value, str) else "?"
    return ""


def dataset_of(program: Program, call: Call) -> Class | None:
    """Return the project's class of what a loader reads."""
    place = resolved_argument(program, call, "dataset", 0)
    return class_of_object(program, place) if place is not None else None


def is_dataset(program: Program, cls: Class) -> bool:
    return bool(DATASETS.intersection(class_and_bases(program, cls.full_name)))


def run_in_workers(program: Program, call: Call) -> list[Function]:
    """The project's functions that a loader's workers run, with what they call."""
    found: list[Function] = []
    cls = dataset_of(program, call)
    if cls is not None:
        for name in ("__getitem__", "__iter__", "__getitems__"):
            method = program.names.method(cls, name)
            if method is not None:
                found.append(method)
    for argument, position in (("collate_fn", 6), ("worker_init_fn", None)):
        place = resolved_argument(program, call, argument, position)
        if place is not None:
            function = program.function(program.dotted(place.module, place.node))
            if function is not None and function.name != "__init__":
                found.append(function)
            made = class_of_object(program, Expression(*place))
            called = program.names.method(made, "__call__") if made is not None else None
            if called is not None:
                found.append(called)
    return reaches(program, *found)


def loaders_in(program: Program, module: Module, node: ast.expr, depth: int = 0) -> set[ast.AST]:
    """The calls that made an expression's loaders, through names, tuples and iterators."""
    if depth > 6:
        return set()
    if isinstance(node, ast.Name):
        binding = program.names.latest(module, node)
        if binding is not None and binding.kind == "unpack" and isinstance(binding.value, ast.Call):
            return _returned(program, module, binding.value, binding.index, depth)
    behind = origin(program, module, node)
    if not isinstance(behind.node, ast.Call):
        return (
            loaders_in(program, behind.module, behind.node, depth + 1)
            if behind.node is not node
            else set()
        )
    called = program.dotted(behind.module, behind.node.func)
    if called == LOADER:
        return {behind.node}
    if called in PASSES:
        return {
            item
            for part in behind.node.args
            for item in loaders_in(program, behind.module, part, depth + 1)
        }
    return _returned(program, behind.module, behind.node, None, depth)


def _returned(
    program: Program, module: Module, call: ast.Call, index: int | None, depth: int
) -> set[ast.AST]:
    function = program.called(module, call)
    if function is None or function.name == "__init__":
        return set()
    found: set[ast.AST] = set()
    for returned in function.returns[:4]:
        value = returned.value
        if index is not None:
            value = (
                value.elts[index]
                if isinstance(value, ast.Tuple | ast.List) and index < len(value.elts)
                else None
            )
        if value is not None:
            found |= loaders_in(program, function.module, value, depth + 1)
    return found
