"""Where in a model something begins: the module that stood open at an exception, that gives other outputs for equal inputs, that makes gradients infinite."""

from __future__ import annotations

import contextlib
import os
import traceback
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from _stress.batches import leaves_of
from _stress.look import gap

TORCH = os.path.dirname(os.path.realpath(torch.__file__)) + os.sep
PROBES = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep
Aligned = Callable[[Any, Any], Optional[Any]]


class Opened:
    """The modules that were called and have not returned, the outermost first."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.stack: List[Tuple[str, Any]] = []

    def innermost(self) -> str:
        """Return the dotted name of the module that stood open last; its class's name where that is the model itself, "" where none was."""
        if not self.stack:
            return ""
        return self.stack[-1][0] or type(self._model).__name__

    def takes(self, tensors: List[Any]) -> bool:
        """Was the innermost open module given one of these tensors as it is, and has it weights of its own that must fit it?"""
        if not self.stack:
            return False
        name, args = self.stack[-1]
        module = dict(self._model.named_modules())[name]
        places = {one.data_ptr() for one in tensors}
        return bool(module._parameters) and any(one.data_ptr() in places for one in leaves_of(args).values())  # noqa: SLF001


@contextlib.contextmanager
def opened(model: Any) -> Iterator[Opened]:
    """Keep count of the open modules; after an exception those that it went through are still on the stack."""
    found = Opened(model)

    def enter(name: str) -> Any:
        return lambda _, args: found.stack.append((name, args))

    def leave(*_: Any) -> None:
        if found.stack:
            found.stack.pop()

    hooks = [module.register_forward_pre_hook(enter(name)) for name, module in model.named_modules()]
    hooks += [module.register_forward_hook(leave) for module in model.modules()]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def own_frame(error: BaseException) -> Optional[traceback.FrameSummary]:
    """Return the innermost frame of an exception that is neither torch's nor ours: the user's line, or the library's of which the model comes."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not os.path.realpath(one.filename).startswith((TORCH, PROBES))]
    return frames[-1] if frames else None


def refused(error: BaseException) -> bool:
    """Did the model's own code refuse in words: does the exception come from a `raise` or an `assert` of its own?"""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    frame = own_frame(error)
    return bool(last) and frame is not None and last[0].filename == frame.filename and (frame.line or "").lstrip().startswith(("raise", "assert"))


class Seen(NamedTuple):
    """One call of one module (the model itself has no name): which of its calls it was, what it was given and what it gave, detached, by name."""

    module: str
    turn: int
    inputs: Dict[str, Any]
    outputs: Dict[str, Any]


@contextlib.contextmanager
def recorded(model: Any, most: int = 3000) -> Iterator[List[Seen]]:
    """Record the calls of all modules, in the order in which they ended."""
    calls: List[Seen] = []
    turns: Dict[str, int] = {}

    def recorder(name: str) -> Any:
        def record(_: Any, args: Any, kwargs: Any, output: Any) -> None:
            if len(calls) < most:
                turns[name] = turns.get(name, 0) + 1
                calls.append(Seen(name, turns[name], _kept((args, kwargs)), _kept(_outputs(output))))

        return record

    hooks = [module.register_forward_hook(recorder(name), with_kwargs=True) for name, module in model.named_modules()]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def _outputs(output: Any) -> Any:
    return output if isinstance(output, (torch.Tensor, list, tuple)) or hasattr(output, "items") else dict(getattr(output, "__dict__", {}))


def _kept(values: Any) -> Dict[str, Any]:
    return {name: one.detach().clone() for name, one in leaves_of(values).items() if isinstance(one, torch.Tensor)}


def own_fault(one: List[Seen], other: List[Seen], aligned: Aligned, tolerance: float) -> Optional[Tuple[str, float]]:
    """Return the module that was given the same in both runs and gave something else, and by how much: "" is the model's own forward.

    `aligned(a, b)` is the part of `a` that must equal `b`, None where the two cannot be compared. The innermost is named: calls end from within.
    None where there is none such.
    """
    theirs = {(call.module, call.turn): call for call in other}
    for call in one:
        twin = theirs.get((call.module, call.turn))
        if twin is not None and _worst(call.inputs, twin.inputs, aligned) <= tolerance:
            apart = _worst(call.outputs, twin.outputs, aligned, scalars=False)
            if apart > tolerance:
                return call.module, apart
    return None


def _worst(one: Dict[str, Any], other: Dict[str, Any], aligned: Aligned, *, scalars: bool = True) -> float:
    worst = 0.0
    for name, tensor in one.items():
        if name in other and (scalars or other[name].dim() > 0):
            part = aligned(tensor, other[name])
            if part is not None:
                worst = max(worst, gap(part, other[name]))
    return worst


def first_of_other_axes(one: List[Seen], other: List[Seen]) -> Optional[str]:
    """Return the innermost module whose outputs have another number of axes in the two runs, though its inputs have not; "" is the model's own forward."""
    theirs = {(call.module, call.turn): call for call in other}
    for call in one:
        twin = theirs.get((call.module, call.turn))
        if twin is not None and _axes(call.inputs) == _axes(twin.inputs) and _axes(call.outputs) != _axes(twin.outputs):
            return call.module
    return None


def _axes(tensors: Dict[str, Any]) -> Dict[str, int]:
    return {name: one.dim() for name, one in tensors.items()}


def first_not_finite(calls: List[Seen]) -> Optional[str]:
    """Return the innermost module that was given finite numbers only and gave others, None where there is none.

    An infinite additive mask is finite in this sense: only nan, and infinities in tensors that hold no other large value, are counted.
    """
    for call in calls:
        if not any(_ill(one) for one in call.inputs.values()) and any(_ill(one) for one in call.outputs.values()):
            return call.module
    return None


def _ill(tensor: Any) -> bool:
    return bool(tensor.is_floating_point() and (torch.isnan(tensor).any() or torch.isposinf(tensor).any()))


def own_views(name: str, watch: Callable[[str, str, Any], None]) -> Any:
    """Return a pre-hook that gives a module views of its own of what wants gradients, each of them told to `watch(name, "in", view)`."""

    def own(tensor: Any) -> Any:
        if not (isinstance(tensor, torch.Tensor) and tensor.requires_grad and tensor.is_floating_point()):
            return tensor
        mine = tensor.view_as(tensor)  # others that are given the same tensor must not count here
        watch(name, "in", mine)
        return mine

    return lambda _, args, kwargs: (tuple(own(one) for one in args), {key: own(one) for key, one in kwargs.items()})


def backward_fault(model: Any, loss_of: Callable[[], Any]) -> Tuple[Optional[str], List[str]]:
    """Return where gradients stop being finite, and the parameters that got such ones.

    It is the innermost module whose outputs' gradients are finite and whose inputs' or parameters' are not; "" is the model's own forward.
    `loss_of()` runs forward and returns the loss.
    """
    fine: Dict[str, Dict[str, bool]] = {}
    order: List[str] = []

    def watch(name: str, side: str, tensor: Any) -> None:
        def note(gradient: Any) -> None:
            row = fine.setdefault(name, {})
            row[side] = row.get(side, True) and bool(torch.isfinite(gradient).all())

        tensor.register_hook(note)

    def gave(name: str) -> Any:
        def record(_: Any, __: Any, output: Any) -> None:
            order.append(name)
            for one in leaves_of(_outputs(output)).values():
                if one.requires_grad and one.is_floating_point():
                    watch(name, "out", one)

        return record

    hooks = [module.register_forward_pre_hook(own_views(name, watch), with_kwargs=True) for name, module in model.named_modules() if name]
    hooks += [module.register_forward_hook(gave(name)) for name, module in model.named_modules() if name]
    try:
        model.zero_grad()
        loss_of().backward()
    finally:
        for hook in hooks:
            hook.remove()
    ill = [name for name, one in model.named_parameters() if one.grad is not None and not bool(torch.isfinite(one.grad).all())]
    begins = [
        name for name in order if fine.get(name, {}).get("out", False) and (not fine[name].get("in", True) or any(one.startswith(f"{name}.") for one in ill))
    ]
    inner = [name for name in begins if not any(other.startswith(f"{name}.") for other in begins)]
    return (inner[-1] if inner else "" if ill else None), ill
