"""A weight's fan-in: how many products with it one element of a result adds up.

The operations that the model runs give it, whatever the layers are called.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Set, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from _model_stress.module_isolation import floats, rebuilt

NONE: FrozenSet[str] = frozenset()


def fan_ins(model: Any, run: Callable[[], Any]) -> Dict[str, float]:
    """The fan-in of each parameter that `run` uses, the largest over its uses. Parameters used only
    in operations that are not linear in them are left out. Raises what the model raises.
    """
    asking = _Asking(model)
    with asking:
        run()
    return asking.found


class _Asking(TorchDispatchMode):  # type: ignore[misc]  # torch gives it no type
    """With ones for all numbers, an operation that is linear in its weight adds up its fan-in.

    `made` holds what depends on no input, by its memory: parameters, constants, and what is made of
    them alone (a cast, a normed or masked weight), with the names of the parameters in it. It keeps
    these tensors alive, as freed memory would soon be another tensor's.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.found: Dict[str, float] = {}
        self.request: Set[Any] = set()
        self.made: Dict[int, Tuple[Any, FrozenSet[str]]] = {}
        for buffer in model.buffers():
            self.made[_memory(buffer)] = (buffer, NONE)
        for name, item in model.named_parameters():
            self.made[_memory(item)] = (item, self.names([item]) | {name})

    def names(self, tensors: Iterable[Any]) -> FrozenSet[str]:
        return NONE.union(*(self.made.get(_memory(item), (None, NONE))[1] for item in tensors))

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        inputs = list(_tensors((args, kwargs)))
        if any(item.is_floating_point() and self.names([item]) for item in inputs):
            self.ask(function, args, kwargs, inputs)
        drawn = torch.Tag.nondeterministic_seeded in function.tags
        constant = not drawn and all(_memory(item) in self.made for item in inputs)
        names = self.names(inputs)
        out = function(*args, **kwargs)
        for item in _tensors(out):
            if constant:
                self.made.setdefault(_memory(item), (item, names))
            else:
                self.made.pop(_memory(item), None)
        return out

    def ask(self, function: Any, args: Any, kwargs: Any, inputs: List[Any]) -> None:
        if function.is_view:
            return
        for weight in inputs:
            names, key = self.names([weight]), (str(function), _memory(weight), weight.shape)
            if not names or key in self.request:
                continue
            self.request.add(key)
            # an operation that does not take other numbers tells nothing
            with contextlib.suppress(Exception):
                size = _summed(function, args, kwargs, weight)
                for name in names if size > 0 else ():
                    self.found[name] = max(size, self.found.get(name, 0.0))


def _summed(function: Any, args: Any, kwargs: Any, weight: Any) -> float:
    """The fan-in of `weight` in one operation, 0 where it is not linear in it."""

    def result(level: float) -> Any:
        def put(_: str, item: Any) -> Any:
            if not item.is_floating_point():
                return item.clone()
            return torch.full_like(item, level if _memory(item) == _memory(weight) else 1.0)

        changed, named = rebuilt((args, kwargs), put)
        return next(iter(floats(function(*changed, **named)).values())).double()

    none, item, two = result(0.0), result(1.0), result(2.0)
    once, twice = item - none, two - none
    linear = bool(twice.isfinite().all()) and torch.allclose(twice, 2 * once, rtol=0.01, atol=1e-6)
    return float(once.abs().max()) if linear and once.numel() else 0.0


def _memory(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _tensors(values: Any) -> Iterable[Any]:
    found: List[Any] = []

    def keep(_: str, item: Any) -> Any:
        found.append(item)
        return item

    rebuilt(values, keep)
    return found
