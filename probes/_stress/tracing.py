"""What every module of a model gave, call by call, in the order in which the calls ended: the first that differs is where a difference begins."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from _stress.batches import leaves_of
from _stress.look import gap


class Call(NamedTuple):
    """One call of one module: its dotted name, which of its calls it was, and its inputs and floating-point outputs (detached, by name)."""

    module: str
    kind: str
    turn: int
    inputs: Dict[str, Any]
    outputs: Dict[str, Any]


@contextlib.contextmanager
def traced(model: Any, *, inputs: bool = False, whole: bool = False, most: int = 5000) -> Iterator[List[Call]]:
    """Record the calls of all modules while it is open; with `inputs` also the tensors that they were given, with `whole` also the model itself, as ``."""
    calls: List[Call] = []
    turns: Dict[str, int] = {}
    given: List[Dict[str, Any]] = []

    def hooks(name: str) -> Tuple[Any, Any]:
        def before(_: Any, args: Any, kwargs: Any) -> None:  # before: it may write into what it is given
            given.append({key: one.detach().clone() for key, one in leaves_of((args, kwargs)).items()} if inputs and len(calls) < most else {})

        def after(module: Any, _: Any, __: Any, output: Any) -> None:
            mine = given.pop()
            if len(calls) < most:
                turns[name] = turns.get(name, 0) + 1
                calls.append(Call(name, type(module).__name__, turns[name], mine, _floats(output)))

        return before, after

    handles = []
    for name, module in model.named_modules():
        if name or whole:
            before, after = hooks(name)
            handles += [module.register_forward_pre_hook(before, with_kwargs=True), module.register_forward_hook(after, with_kwargs=True)]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def _floats(values: Any) -> Dict[str, Any]:
    return {name: one.detach().clone() for name, one in leaves_of(values).items() if isinstance(one, torch.Tensor) and one.is_floating_point()}


def apart_by_itself(one: List[Call], other: List[Call], tolerance: float) -> Optional[str]:
    """The innermost module that gives different outputs for equal inputs: whose own code differs. Of two records with `inputs`; None where none does."""
    for mine, theirs in zip(one, other):
        if mine.module != theirs.module or mine.inputs.keys() != theirs.inputs.keys():
            return None
        same = all(gap(mine.inputs[name], theirs.inputs[name]) == 0 for name in mine.inputs)
        if same and any(gap(mine.outputs[name], theirs.outputs[name]) > tolerance for name in mine.outputs if name in theirs.outputs):
            return mine.module
    return None
