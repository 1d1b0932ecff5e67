"""Lambdas and inner functions that are to cross a spawn."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.calls import calls_ending_in
from trainprobe.lint.expressions import Expression, origin, resolved_argument
from trainprobe.lint.loaders import dataset_of, has_workers, loaders, start_method
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import FUNCTIONS
from trainprobe.lint.program import Program
from trainprobe.lint.starts import SPAWN, SPAWNING, method, starting

RULE = Rule(
    id="unpicklable-spawn",
    cause="unpicklable-dataset",
    title="Unpicklable objects for spawned processes",
    why=(
        "Everything that goes to a spawned process is pickled, and lambdas and nested functions"
        ' cannot be: "Can\'t pickle local object".'
    ),
    fix=("Define a function at the top level of the module; bind values with functools.partial."),
    confidence=0.85,
)


LEAVES_OUT = ("__getstate__", "__reduce__", "__reduce_ex__")


def find(program: Program) -> Iterator[Finding]:
    for loader in loaders(program):
        if start_method(program, loader) not in SPAWNING or not has_workers(program, loader):
            continue
        for argument, position in (("collate_fn", 6), ("worker_init_fn", None)):
            place = resolved_argument(program, loader, argument, position)
            what = _unpicklable(program, place) if place is not None else ""
            if what:
                yield RULE.finding(
                    loader.module,
                    loader.node,
                    f"{argument} is {what}, and the workers are spawned.",
                )
        cls = dataset_of(program, loader)
        if cls is None or any(program.names.method(cls, name) is not None for name in LEAVES_OUT):
            continue
        for name, values in cls.attributes.items():
            for value in values:
                if isinstance(value, ast.Lambda) and cls.module.function_of(value) is not None:
                    message = (
                        f"self.{name} of {cls.name} is a lambda, and the workers of the DataLoader"
                        f" in line {loader.node.lineno} are spawned."
                    )
                    yield RULE.finding(cls.module, cls.module.statement_of(value), message)
    for name, argument, position in (("spawn", "fn", 0), ("Process", "target", 1)):
        for call in calls_ending_in(program, name):
            kind = starting(program, call.module, call.node)
            if kind != name or (
                call.name not in SPAWN and method(program, call.module, call.node) not in SPAWNING
            ):
                continue
            place = resolved_argument(program, call, argument, position)
            what = _unpicklable(program, place) if place is not None else ""
            if what:
                yield RULE.finding(
                    call.module, call.node, f"{argument} is {what}, and the process is spawned."
                )


def _unpicklable(program: Program, place: Expression) -> str:
    behind = origin(program, place.module, place.node)
    if isinstance(behind.node, ast.Lambda):
        return "a lambda"
    function = program.function(program.dotted(behind.module, behind.node))
    if (
        function is not None
        and isinstance(function.module.scope_of(function.node), FUNCTIONS)
        and function.name == getattr(behind.node, "id", "")
    ):
        return "a function inside a function"
    return ""
