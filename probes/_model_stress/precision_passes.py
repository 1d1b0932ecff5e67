"""One pass of a model forward and back in a type: under autocast, or all of it."""

from __future__ import annotations

import contextlib
import math
import warnings
from typing import Any, Callable, List, NamedTuple, Optional

import torch

from _model_stress import mixed_precision
from _model_stress.module_state import loose
from _model_stress.tested_model import TestedModel

MISSING = (
    "not implemented for",
    "could not create a primitive",
    "not supported",
    "unsupported",
    "could not run",
    "no kernel",
    "does not support",
)


class Mode(NamedTuple):
    """`auto`: autocast with float32 weights; else the whole model and its inputs are cast."""

    label: str
    dtype: Any
    auto: bool


MODES = (
    Mode("autocast float16", torch.float16, auto=True),
    Mode("autocast bfloat16", torch.bfloat16, auto=True),
    Mode("float16", torch.float16, auto=False),
    Mode("bfloat16", torch.bfloat16, auto=False),
)


class Pass(NamedTuple):
    """One pass forward and backward. `gradient` is the first parameter with inf or nan."""

    loss: float
    watch: mixed_precision.Watch
    error: Optional[BaseException]
    backward: bool
    gradient: str


def passed(tested: TestedModel, model: Any, batch: Any, mode: Optional[Mode]) -> Pass:
    """Run `model` once, forward and back; what it raises is in the answer."""
    device = tested.device
    scope: Any = (
        torch.autocast(device, dtype=mode.dtype)
        if mode is not None and mode.auto
        else contextlib.nullcontext()
    )
    bad: List[str] = []
    hooks = [
        item.register_hook(_gradient_hook(name, bad))
        for name, item in model.named_parameters()
        if item.requires_grad
    ]
    loss, error, backward = math.nan, None, False
    with mixed_precision.watched(model) as watch, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with scope:
                ran = tested.run(model, batch, seed=0, grad=True)
            loss, backward = float(ran.loss.detach()), True
            if ran.loss.requires_grad:
                ran.loss.backward()
        except Exception as caught:  # what the user's code raises is the finding
            error = caught
    for hook in hooks:
        hook.remove()
    if (
        mode is not None
        and mode.auto
        and any("isabling autocast" in str(item.message) for item in warned)
    ):
        error = NotImplementedError("autocast to this type is not supported here")
    return Pass(loss, watch, error, backward, bad[0] if bad else "")


def unreached(
    tested: TestedModel,
    make: Callable[..., Any],
    length: Optional[int],
    mode: Mode,
    error: BaseException,
) -> str:
    """The first unregistered tensor whose cast by hand avoids `error`; "" without one."""
    model = make(lively=False, dtype=mode.dtype)
    mine, other = loose(model), loose(tested.build(tested.request.seed + 1))
    drawn = [
        name
        for name, cell in mine.items()
        if cell.value.requires_grad
        or name not in other
        or not _alike(cell.value, other[name].value)
    ]
    for name in drawn:
        mine[name].put(
            mine[name].value.detach().to(mode.dtype).requires_grad_(mine[name].value.requires_grad)
        )
    after = (
        passed(tested, model, tested.batch(2, length, seed=1, model=model), mode).error
        if drawn
        else error
    )
    return drawn[0] if after is None or str(after) != str(error) else ""


def _alike(this: Any, other: Any) -> bool:
    return this.shape == other.shape and bool(
        torch.equal(this.detach(), other.detach().to(this.dtype))
    )


def _gradient_hook(name: str, bad: List[str]) -> Any:
    def findings(gradient: Any) -> None:
        if not bool(torch.isfinite(gradient).all()):
            bad.append(name)

    return findings


def is_missing(error: BaseException) -> bool:
    """Whether the installed torch lacks the operation, which is no fault of the model."""
    words = str(error).lower()
    return isinstance(error, NotImplementedError) or any(item in words for item in MISSING)


def name_of(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]
