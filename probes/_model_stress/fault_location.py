"""Finds the module where a fault begins: an exception, different outputs, infinite gradients."""

from __future__ import annotations

import contextlib
import os
import traceback
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from _model_stress.batches import leaves_of
from _model_stress.findings import gap
from _model_stress.module_hooks import hooked

TORCH = os.path.dirname(os.path.realpath(torch.__file__)) + os.sep
PROBES = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep
Aligned = Callable[[Any, Any], Optional[Any]]


class Opened:
    """The modules that were called and have not returned, the outermost first."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.stack: List[Tuple[str, Any]] = []

    def innermost(self) -> str:
        """The innermost open module: the class name for the model itself, "" where none is open."""
        if not self.stack:
            return ""
        return self.stack[-1][0] or type(self._model).__name__

    def takes(self, tensors: List[Any]) -> bool:
        """Whether the innermost open module has weights and received one of these tensors."""
        if not self.stack:
            return False
        name, args = self.stack[-1]
        module = dict(self._model.named_modules())[name]
        places = {item.data_ptr() for item in tensors}
        return bool(module._parameters) and any(  # noqa: SLF001
            item.data_ptr() in places for item in leaves_of(args).values()
        )


@contextlib.contextmanager
def opened(model: Any) -> Iterator[Opened]:
    """Track the open modules; after an exception the stack holds those that it passed."""
    found = Opened(model)

    def enter(name: str, args: Any, _kwargs: Any) -> None:
        found.stack.append((name, args))

    def leave(_name: str, _output: Any) -> None:
        if found.stack:
            found.stack.pop()

    with hooked(model, enter, leave):
        yield found


def own_frame(error: BaseException) -> Optional[traceback.FrameSummary]:
    """The innermost frame of an exception that is neither torch's nor ours."""
    frames = [
        item
        for item in traceback.extract_tb(error.__traceback__)
        if not os.path.realpath(item.filename).startswith((TORCH, PROBES))
    ]
    return frames[-1] if frames else None


def refused(error: BaseException) -> bool:
    """Whether the model's own code refused the input by a `raise` or an `assert`."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    frame = own_frame(error)
    return (
        bool(last)
        and frame is not None
        and last[0].filename == frame.filename
        and (frame.line or "").lstrip().startswith(("raise", "assert"))
    )


class RecordedCall(NamedTuple):
    """One call of a module ("" is the model): its number, detached inputs and outputs by name."""

    module: str
    turn: int
    inputs: Dict[str, Any]
    outputs: Dict[str, Any]


@contextlib.contextmanager
def recorded(model: Any, most: int = 3000) -> Iterator[List[RecordedCall]]:
    """Record the calls of all modules, in the order in which they ended."""
    calls: List[RecordedCall] = []
    turns: Dict[str, int] = {}
    inputs: List[Dict[str, Any]] = []  # of the open calls; a module may write into its inputs

    def enter(_name: str, args: Any, kwargs: Any) -> None:
        inputs.append(_copies((args, kwargs)) if len(calls) < most else {})

    def leave(name: str, output: Any) -> None:
        own = inputs.pop()
        if len(calls) < most:
            turns[name] = turns.get(name, 0) + 1
            calls.append(RecordedCall(name, turns[name], own, _copies(_outputs(output))))

    with hooked(model, enter, leave):
        yield calls


def _outputs(output: Any) -> Any:
    return (
        output
        if isinstance(output, (torch.Tensor, list, tuple)) or hasattr(output, "items")
        else dict(getattr(output, "__dict__", {}))
    )


def _copies(values: Any) -> Dict[str, Any]:
    return {
        name: item.detach().clone()
        for name, item in leaves_of(values).items()
        if isinstance(item, torch.Tensor)
    }


def own_fault(
    this: List[RecordedCall],
    other: List[RecordedCall],
    aligned: Aligned,
    tolerance: float,
    *,
    scalars: bool = False,
) -> Optional[Tuple[str, float]]:
    """The innermost module given the same in both runs that gave something else, and by how much;
    "" is the model's own forward, None means that there is none.

    `aligned(a, b)` is the part of `a` that must equal `b`, or None. Outputs that are one number
    count with `scalars` only.
    """
    theirs = {(call.module, call.turn): call for call in other}
    for call in this:
        twin = theirs.get((call.module, call.turn))
        if twin is not None and _worst(call.inputs, twin.inputs, aligned) <= tolerance:
            apart = _worst(call.outputs, twin.outputs, aligned, scalars=scalars)
            if apart > tolerance:
                return call.module, apart
    return None


def _worst(
    this: Dict[str, Any], other: Dict[str, Any], aligned: Aligned, *, scalars: bool = True
) -> float:
    worst = 0.0
    for name, tensor in this.items():
        if name in other and (scalars or other[name].dim() > 0):
            part = aligned(tensor, other[name])
            if part is not None:
                worst = max(worst, gap(part, other[name]))
    return worst


def first_of_other_axes(this: List[RecordedCall], other: List[RecordedCall]) -> Optional[str]:
    """The innermost module whose outputs, but not inputs, have another number of axes."""
    theirs = {(call.module, call.turn): call for call in other}
    for call in this:
        twin = theirs.get((call.module, call.turn))
        if (
            twin is not None
            and _axes(call.inputs) == _axes(twin.inputs)
            and _axes(call.outputs) != _axes(twin.outputs)
        ):
            return call.module
    return None


def _axes(tensors: Dict[str, Any]) -> Dict[str, int]:
    return {name: item.dim() for name, item in tensors.items()}


def first_not_finite(calls: List[RecordedCall]) -> Optional[str]:
    """The innermost module with finite inputs and other outputs, or None. An infinite additive mask
    counts as finite: only nan and positive infinities are faults.
    """
    for call in calls:
        if not any(_ill(item) for item in call.inputs.values()) and any(
            _ill(item) for item in call.outputs.values()
        ):
            return call.module
    return None


def _ill(tensor: Any) -> bool:
    return bool(
        tensor.is_floating_point() and (torch.isnan(tensor).any() or torch.isposinf(tensor).any())
    )


def _own_views(name: str, args: Any, kwargs: Any, watch: Callable[[str, str, Any], None]) -> Any:
    """Return inputs with views, which no other module shares, and `watch` those with gradients."""

    def own(tensor: Any) -> Any:
        if not _wants_gradient(tensor):
            return tensor
        mine = tensor.view_as(tensor)
        watch(name, "in", mine)
        return mine

    return tuple(own(item) for item in args), {key: own(item) for key, item in kwargs.items()}


def watch_borders(model: Any, watch: Callable[[str, str, Any], None]) -> Any:
    """Call `watch(name, side, tensor)` for gradient tensors at the "in" and "out" of modules."""

    def leave(name: str, output: Any) -> None:
        for item in leaves_of(_outputs(output)).values():
            if _wants_gradient(item):
                watch(name, "out", item)

    return hooked(
        model,
        lambda name, args, kwargs: _own_views(name, args, kwargs, watch),
        leave,
        lambda name, _module: bool(name),
    )


def _wants_gradient(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.requires_grad and tensor.is_floating_point()


def ill_gradients(model: Any) -> List[str]:
    """The parameters whose gradients are not finite."""
    return [
        name
        for name, item in model.named_parameters()
        if item.grad is not None and not bool(torch.isfinite(_dense(item.grad)).all())
    ]


def _dense(gradient: Any) -> Any:
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def backward_fault(model: Any, loss_of: Callable[[], Any]) -> Tuple[Optional[str], List[str]]:
    """Where gradients stop being finite, and the parameters with such gradients.

    It is the innermost module with finite gradients of outputs but not of inputs or parameters; ""
    is the model's own forward. `loss_of()` runs forward and returns the loss.
    """
    fine: Dict[str, Dict[str, bool]] = {}
    order: List[str] = []

    def watch(name: str, side: str, tensor: Any) -> None:
        if side == "out":
            order.append(name)

        def note(gradient: Any) -> None:
            row = fine.setdefault(name, {})
            row[side] = row.get(side, True) and bool(torch.isfinite(gradient).all())

        tensor.register_hook(note)

    with watch_borders(model, watch):
        model.zero_grad()
        loss_of().backward()
    ill = ill_gradients(model)
    begins = [
        name
        for name in order
        if fine.get(name, {}).get("out", False)
        and (not fine[name].get("in", True) or any(item.startswith(f"{name}.") for item in ill))
    ]
    inner = [name for name in begins if not any(other.startswith(f"{name}.") for other in begins)]
    return (inner[-1] if inner else "" if ill else None), ill
