"""What every module of a model gave, call by call, in the order in which the calls ended: the first that differs is where a difference begins."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

import torch

from _stress.batches import leaves_of
from _stress.look import gap


class Call(NamedTuple):
    """One call of one module: its dotted name, which of its calls it was, and its floating-point inputs and outputs (detached, by name)."""

    module: str
    kind: str
    turn: int
    inputs: Dict[str, Any]
    outputs: Dict[str, Any]


@contextlib.contextmanager
def traced(model: Any, *, inputs: bool = False, most: int = 5000) -> Iterator[List[Call]]:
    """Record the calls of all modules but the model itself, while it is open; with `inputs` also what they were given."""
    calls: List[Call] = []
    turns: Dict[str, int] = {}

    def recorder(name: str) -> Any:
        def record(module: Any, args: Any, kwargs: Any, output: Any) -> None:
            if len(calls) < most:
                turns[name] = turns.get(name, 0) + 1
                given = _floats((args, kwargs)) if inputs else {}
                calls.append(Call(name, type(module).__name__, turns[name], given, _floats(output)))

        return record

    hooks = [module.register_forward_hook(recorder(name), with_kwargs=True) for name, module in model.named_modules() if name]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def _floats(values: Any) -> Dict[str, Any]:
    return {name: one.detach().clone() for name, one in leaves_of(values).items() if isinstance(one, torch.Tensor) and one.is_floating_point()}


def first_apart(one: List[Call], other: List[Call], tolerance: float) -> Optional[str]:
    """The name of the first module whose outputs differ by more than `tolerance`, relative; None where none does.

    The calls are compared in order; where the two runs called different modules the first that differs is named.
    """
    for mine, theirs in zip(one, other):
        if mine.module != theirs.module:
            return mine.module
        if any(gap(mine.outputs[name], theirs.outputs[name]) > tolerance for name in mine.outputs if name in theirs.outputs):
            return mine.module
    return None
