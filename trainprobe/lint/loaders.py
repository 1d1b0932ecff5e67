"""The data loaders of a program: their workers, how these start, and the class of what they read."""

from __future__ import annotations

import ast
from typing import Any

from trainprobe.lint.modules import Class, Function
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import Call, Place, among, calls_of, class_of_object, given, is_open, kinds, origin
from trainprobe.lint.values import UNKNOWN

LOADER = "torch.utils.data.DataLoader"
DATASETS = {
    "torch.utils.data.Dataset", "torch.utils.data.IterableDataset", "torch.utils.data.dataset.Dataset", "torch.utils.data.dataset.IterableDataset",
    "torchvision.datasets.VisionDataset",
}  # fmt: skip


def loaders(program: Program) -> list[Call]:
    return calls_of(program, LOADER)


def workers(program: Program, call: Call) -> Any:
    """Return the number of workers of a loader: a number, UNKNOWN, or 0 where none is given."""
    place = given(program, call.module, call.node, "num_workers", 5)
    if place is None:
        return UNKNOWN if is_open(program, call.module, call.node) else 0
    value = program.value(place.module, place.node)
    if value is UNKNOWN:
        behind = origin(program, place.module, place.node)
        value = program.value(behind.module, behind.node)
    return value


def has_workers(program: Program, call: Call) -> bool:
    """Whether the loader is given workers: a number above 0, or one that somebody sets elsewhere."""
    number = workers(program, call)
    return (isinstance(number, int) and number > 0) or (number is UNKNOWN and given(program, call.module, call.node, "num_workers", 5) is not None)


def start_method(program: Program, call: Call) -> str:
    """Return "fork", "spawn", "forkserver", or "" where the platform's default holds."""
    place = given(program, call.module, call.node, "multiprocessing_context")
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
        for one in among(program, call.module, name):
            place = given(program, one.module, one.node, "method", 0)
            value = program.value(place.module, place.node) if place is not None else UNKNOWN
            return value if isinstance(value, str) else "?"
    return ""


def dataset_of(program: Program, call: Call) -> Class | None:
    """Return the project's class of what a loader reads."""
    place = given(program, call.module, call.node, "dataset", 0)
    return class_of_object(program, place) if place is not None else None


def is_dataset(program: Program, cls: Class) -> bool:
    return bool(DATASETS.intersection(kinds(program, f"{cls.module.name}.{cls.qualname}")))


def run_in_workers(program: Program, call: Call) -> list[Function]:
    """Return the project's functions that a loader's workers run: those of its data set, its collator and its worker_init_fn, with what they call."""
    found: list[Function] = []
    cls = dataset_of(program, call)
    if cls is not None:
        for name in ("__getitem__", "__iter__", "__getitems__"):
            method = program.names.method(cls, name)
            if method is not None:
                found.append(method)
    for word, position in (("collate_fn", 6), ("worker_init_fn", None)):
        place = given(program, call.module, call.node, word, position)
        if place is not None:
            function = program.function(program.dotted(place.module, place.node))
            if function is not None and function.name != "__init__":
                found.append(function)
            made = class_of_object(program, Place(*place))
            called = program.names.method(made, "__call__") if made is not None else None
            if called is not None:
                found.append(called)
    return with_what_they_call(program, found)


def with_what_they_call(program: Program, start: list[Function]) -> list[Function]:
    seen, left = dict.fromkeys(start), list(start)
    while left and len(seen) < 200:
        one = left.pop()
        for node in one.calls:
            called = program.called(one.module, node)
            if called is not None and called not in seen:
                seen[called] = None
                left.append(called)
    return list(seen)
