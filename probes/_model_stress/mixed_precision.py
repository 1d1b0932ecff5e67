"""Finds modules whose own code, in a narrower type, overflows, casts down or loses digits."""

from __future__ import annotations

import contextlib
import math
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from _model_stress.batches import leaves_of, rebuilt
from _model_stress.module_hooks import hooked

DEEP = -3e4  # a mask's own value: below it -inf in half says the same
# times what a module was given: trained weights give more than those that were just drawn
LEVELS = (2.0, 4.0, 8.0, 16.0)
LARGEST_INPUT = 64.0
# times the inputs: a result that grows more than they do (an exponential, a square) is large by
# what it means, not by how it is calculated
GROWS = 1.5
# what a norm must bear: single features of trained models' residuals are in the thousands (Dettmers
# et al., LLM.int8(), 2022)
OUTLIER = 2048.0
# a loss near nought is a difference of logits that are not: it is as sure as they are
LEAST_LOSS = 0.1
UNITS = 5  # of the type; sound modules of transformers' families take one
# a sum of so many in bfloat16, kept in bfloat16, has stopped growing (its 8 bits) or lost a tenth
POSITIONS = 1024
# units of float32: there a sum of n terms is rounded n times, in half types torch sums in float32
SUMS = 512
MOST_CASTS = 200  # of one pass
MOST_TAKEN = 2**30  # bytes of inputs that are kept


class ModuleRecord(NamedTuple):
    """What the tensors of one call held. `types` are those of its inputs and of its outputs."""

    module: str
    turn: int
    fine_inputs: bool
    nan: bool
    plus: bool
    minus: bool
    deep: bool
    types: Tuple[Tuple[Any, ...], Tuple[Any, ...]]


class Watch:
    """`records` in the order of returning; `open` the modules not returned, outermost first."""

    def __init__(self) -> None:
        self.records: List[ModuleRecord] = []
        self.open: List[str] = []
        self.turns: Dict[str, int] = {}

    def first_bad(self, reference: Watch) -> Optional[ModuleRecord]:
        """The innermost module that made inf or nan of fine inputs, unlike `reference`; or None."""
        known = {(item.module, item.turn): item for item in reference.records}
        for item in self.records:
            other = known.get((item.module, item.turn))
            bad = (
                item.nan
                or item.plus
                or (item.minus and not (other is not None and (other.deep or other.minus)))
            )
            if bad and item.fine_inputs and not (other is not None and (other.nan or other.plus)):
                return item
        return None

    def widener(self, narrow: Any) -> Optional[str]:
        """The innermost module that returned float32 for `narrow` inputs only; None without one."""
        for item in self.records:
            inputs, gave = item.types
            if (
                torch.float32 in gave
                and all(kind is narrow for kind in inputs)
                and narrow not in gave
            ):
                return item.module
        return None


@contextlib.contextmanager
def watched(model: Any) -> Iterator[Watch]:
    """Watch all calls of the modules of `model`, itself too, while it is open."""
    watch = Watch()
    begun: List[Tuple[bool, Tuple[Any, ...]]] = []

    def enter(name: str, args: Any, kwargs: Any) -> None:
        watch.open.append(name)
        floats = _floats((args, kwargs))
        fine = not any(bool((item.isnan() | (item == math.inf)).any()) for item in floats)
        begun.append((fine, tuple(item.dtype for item in floats)))

    def leave(name: str, output: Any) -> None:
        watch.open.pop()
        fine, types = begun.pop()
        turn = watch.turns[name] = watch.turns.get(name, 0) + 1
        if len(watch.records) < 20000:
            floats = _floats(output)
            of_types = (types, tuple(item.dtype for item in floats))
            watch.records.append(ModuleRecord(name, turn, fine, *_held(floats), of_types))

    with hooked(model, enter, leave):
        yield watch


def _floats(values: Any) -> List[Any]:
    found = leaves_of(
        values
        if isinstance(values, (torch.Tensor, list, tuple, dict)) or hasattr(values, "items")
        else getattr(values, "__dict__", {})
    )
    return [item.detach() for item in found.values() if item.is_floating_point()]


def _held(floats: List[Any]) -> Tuple[bool, bool, bool, bool]:
    nan = any(bool(item.isnan().any()) for item in floats)
    plus = any(bool((item == math.inf).any()) for item in floats)
    minus = any(bool((item == -math.inf).any()) for item in floats)
    return nan, plus, minus, any(item.numel() > 0 and float(item.min()) < DEEP for item in floats)


def is_own(module: Any) -> bool:
    """Whether it is somebody's own code. The precision of a torch layer is torch's concern."""
    return not type(module).__module__.startswith("torch.")


# ---- casts by hand


class Cast(NamedTuple):
    """A cast down to `kind`. `fed`: the value depends on weights or on the batch."""

    kind: Any
    fed: bool


class _Casts(TorchDispatchMode):  # type: ignore[misc]  # torch gives it no type
    def __init__(self, on_cast: Callable[[Any, Any], None]) -> None:
        super().__init__()
        self.on_cast = on_cast

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = function(*args, **(kwargs or {}))
        if (
            isinstance(out, torch.Tensor)
            and out.dtype in (torch.float16, torch.bfloat16)
            and "_to_copy" in str(function)
        ):
            self.on_cast(args[0], out.dtype)
        return out


def casts_of(model: Any, runs: Sequence[Callable[[], Any]]) -> Dict[str, Cast]:
    """The modules whose own code casts down to a half type in a float32 run; "" is the model
    itself. `runs` differ in values only: what is the same in all and has no gradient is constant.
    """
    records: List[List[Tuple[str, Any, Any]]] = []
    for run in runs:
        with watched(model) as watch:
            mine: List[Tuple[str, Any, Any]] = []

            def on_cast(
                inputs: Any,
                kind: Any,
                watch: Watch = watch,
                mine: List[Tuple[str, Any, Any]] = mine,
            ) -> None:
                if len(mine) < MOST_CASTS:
                    mine.append(
                        (
                            watch.open[-1] if watch.open else "",
                            kind,
                            inputs if inputs.requires_grad else inputs.detach().clone(),
                        )
                    )

            with _Casts(on_cast):
                run()
        records.append(mine)
    found: Dict[str, Cast] = {}
    for place, (name, kind, inputs) in enumerate(records[0]):
        others = [many[place][2] for many in records[1:] if place < len(many)]
        fed = (
            inputs.requires_grad
            or len(others) < len(records) - 1
            or any(item.shape != inputs.shape or not torch.equal(item, inputs) for item in others)
        )
        if name not in found or (fed and not found[name].fed):
            found[name] = Cast(kind, fed)
    return found


# ---- one module by itself


class RecordedInput(NamedTuple):
    """The input of the first call of a module."""

    module: str
    args: Any
    kwargs: Any


@contextlib.contextmanager
def taking(model: Any) -> Iterator[List[RecordedInput]]:
    """Record the first inputs of all modules that are not torch's layers, innermost first."""
    taken: List[RecordedInput] = []
    begun: Dict[str, RecordedInput] = {}
    size = 0

    def enter(name: str, args: Any, kwargs: Any) -> None:
        nonlocal size
        if name not in begun and size < MOST_TAKEN:
            inputs = rebuilt((args, kwargs), lambda _, item: item.detach().clone())
            size += sum(item.numel() * item.element_size() for item in leaves_of(inputs).values())
            begun[name] = RecordedInput(name, *inputs)

    def leave(name: str, _output: Any) -> None:
        item = begun.get(name)
        if item is not None and not any(item is other for other in taken):
            taken.append(item)

    containers = (torch.nn.ModuleList, torch.nn.ModuleDict)
    with hooked(
        model, enter, leave, lambda _, module: is_own(module) and not isinstance(module, containers)
    ):
        yield taken


class OwnError(NamedTuple):
    """What a module did by itself: the relative `error` that its own code adds and the `allowed`
    one; `overflow` at how many times its inputs, 0 for never. `norm`: it was a norm, which must
    bear any size; `grows`: the wide result had grown more than the inputs, as exponentials do.
    """

    error: float
    allowed: float
    overflow: float
    norm: bool
    grows: bool = False


def alone(
    narrow: Any, wide: Any, taken: RecordedInput, dtype: Any, seed: int = 0
) -> Optional[OwnError]:
    """Call a module in `dtype` and in a wider type with the same numbers; None if it cannot be
    called alone.

    What differs is what its own code adds. Allowed is five times what the wide one makes of inputs
    and weights that differ in the last digit, and five units of the type: some tens of operations,
    each rounded once (Higham, Accuracy and Stability of Numerical Algorithms, 2002, §3: errors add
    as the root of their number, seldom more).
    """
    wider = next(
        (item.dtype for item in wide.parameters() if item.is_floating_point()),
        torch.float64 if dtype is torch.float32 else torch.float32,
    )
    unit = torch.finfo(dtype).eps
    try:
        inputs = _cast((taken.args, taken.kwargs), dtype)
        right = _called(wide, _cast(inputs, wider), seed)
        again = _called(wide, _cast(inputs, wider), seed)
        got = _called(narrow, inputs, seed)
        shaken = [_moved(wide, _cast(inputs, wider), unit, draw, seed) for draw in (1, 2)]
    except Exception:
        # what is raised in the run of the whole is told there; by itself it may lack what the whole
        # gives it
        return None
    if (
        not right
        or any(lost(item, other) > unit for item, other in zip(right, again))
        or len(got) != len(right)
    ):
        return None
    error = max(lost(item, other) for item, other in zip(got, right))
    units = SUMS if dtype is torch.float32 else UNITS
    allowed = units * unit + UNITS * max(
        lost(item, other) for many in shaken for item, other in zip(many, right)
    )
    if dtype is torch.bfloat16 and error <= allowed:
        error = max(error, _long(narrow, wide, inputs, wider, seed))
    level, norm, grows = (
        (0.0, False, False)
        if dtype is not torch.float16
        else _overflows(narrow, wide, inputs, right, wider, seed)
    )
    return OwnError(error, allowed, level, norm, grows)


def _long(narrow: Any, wide: Any, inputs: Any, wider: Any, seed: int) -> float:
    """The error over many positive positions: a sum kept in the narrow type stops growing."""
    floats = leaves_of(inputs)
    sequence = next(iter(floats.values()), None)
    if (
        sequence is None
        or len(floats) != 1
        or not sequence.is_floating_point()
        or sequence.dim() != 3
        or not sequence.numel()
    ):
        return 0.0
    many = rebuilt(
        inputs,
        lambda _, item: item[:1].abs().repeat(1, -(-POSITIONS // item.shape[1]), 1)[:, :POSITIONS],
    )
    try:
        right = _called(wide, _cast(many, wider), seed)
        again = _called(wide, _cast(many, wider), seed)
        got = _called(narrow, many, seed)
    except Exception:
        return 0.0  # it does not take as many
    if len(got) != len(right) or any(lost(item, other) > 0 for item, other in zip(again, right)):
        return 0.0
    return max((lost(item, other) for item, other in zip(got, right)), default=0.0)


def _overflows(
    narrow: Any, wide: Any, inputs: Any, right: List[Any], wider: Any, seed: int
) -> Tuple[float, bool, bool]:
    first = next(
        (name for name, item in leaves_of(inputs).items() if item.is_floating_point()), None
    )
    if first is None:
        return 0.0, False, False
    biggest = (
        float(leaves_of(inputs)[first].abs().max()) if leaves_of(inputs)[first].numel() else 0.0
    )
    if not 0 < biggest < LARGEST_INPUT:
        return 0.0, False, False
    with contextlib.suppress(Exception):
        for level in (1.0, *LEVELS):
            if level > 1 and biggest * level > LARGEST_INPUT:
                break
            more = _times(inputs, first, level)
            wanted = _called(wide, _cast(more, wider), seed)
            if not all(
                bool(item.isfinite().all()) and float(item.abs().max()) < 8e3
                for item in wanted
                if item.numel()
            ):
                break
            if not all(bool(item.isfinite().all()) for item in _called(narrow, more, seed)):
                return (
                    level,
                    False,
                    level > 1 and _largest(wanted) > GROWS * level * _largest(right),
                )
        louder = _called(wide, _cast(_times(inputs, first, 16.0), wider), seed)
        # what does not ask how large its input is: a norm
        if all(lost(item, other) < 1e-2 for item, other in zip(louder, right)):
            more = _times(inputs, first, OUTLIER / biggest)
            wanted, got = _called(wide, _cast(more, wider), seed), _called(narrow, more, seed)
            if any(lost(item, other) > 0.1 for item, other in zip(got, wanted)):
                return OUTLIER / biggest, True, False
    return 0.0, False, False


def _largest(values: List[Any]) -> float:
    return max((float(item.abs().max()) for item in values if item.numel()), default=0.0)


def lost(this: Any, other: Any) -> float:
    """The difference that four of five elements keep within, relative to `other`'s root mean
    square. Not the largest: rows that are routed elsewhere by the last digit are no fault.
    """
    if this.shape != other.shape:
        return math.inf
    first = this.detach().double().flatten()[:2000000]
    second = other.detach().double().flatten()[:2000000]
    fine = second.isfinite() & (second > DEEP)
    if not bool(fine.any()):
        return 0.0
    if not bool(first[fine].isfinite().all()):
        return math.inf
    apart = (first[fine] - second[fine]).abs()
    return float(apart.kthvalue(max(1, math.ceil(0.8 * apart.numel()))).values) / max(
        float(second[fine].pow(2).mean().sqrt()), LEAST_LOSS if second.numel() == 1 else 1e-9
    )


def _called(module: Any, inputs: Any, seed: int) -> List[Any]:
    args, kwargs = rebuilt(inputs, lambda _, item: item.clone())
    torch.manual_seed(seed)
    with torch.enable_grad():  # as in training: without it torch's own layers take other ways
        return _floats(module(*args, **kwargs))


def _cast(inputs: Any, dtype: Any) -> Any:
    """Cast all floating-point tensors to `dtype`, clamping what is finite to its range."""
    limit = torch.finfo(dtype)

    def cast(_: str, item: Any) -> Any:
        if not item.is_floating_point():
            return item
        if torch.finfo(item.dtype).max > limit.max:
            item = torch.where(item.isfinite(), item.clamp(limit.min, limit.max), item)
        return item.to(dtype)

    return rebuilt(inputs, cast)


def _times(inputs: Any, name: str, level: float) -> Any:
    return rebuilt(inputs, lambda mine, item: item * level if mine == name else item)


def _moved(module: Any, inputs: Any, unit: float, draw: int, seed: int) -> List[Any]:
    """Outputs after the last digit of inputs and weights changed, as rounding would do."""
    before = {name: item.detach().clone() for name, item in module.named_parameters()}
    with torch.no_grad():
        for name, item in module.named_parameters():
            item.copy_(_shaken(before[name], unit, draw))
    try:
        return _called(module, _shaken(inputs, unit, draw), seed)
    finally:
        with torch.no_grad():
            for name, item in module.named_parameters():
                item.copy_(before[name])


def _shaken(inputs: Any, unit: float, seed: int) -> Any:
    draw = torch.Generator().manual_seed(seed)

    def shake(_: str, item: Any) -> Any:
        return (
            item * (1 + 0.5 * unit * torch.randn(item.shape, generator=draw).to(item))
            if item.is_floating_point()
            else item
        )

    return rebuilt(inputs, shake)
