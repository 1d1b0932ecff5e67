"""A model's modules in a narrower type: which one's own code makes inf or nan, casts down by itself, or loses more digits than the type costs."""

from __future__ import annotations

import contextlib
import math
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from _stress.batches import leaves_of, rebuilt

DEEP = -3e4  # a mask's own value: below it -inf in half says the same
LEVELS = (2.0, 4.0, 8.0, 16.0)  # times what a module was given: trained weights give more than those that were just drawn
LARGEST_INPUT = 64.0
GROWS = 1.5  # times the inputs: a result that grows more than they do (an exponential, a square) is large by what it means, not by how it is calculated
OUTLIER = 2048.0  # what a norm must bear: single features of trained models' residuals are in the thousands (Dettmers et al., LLM.int8(), 2022)
LEAST_LOSS = 0.1  # a loss near nought is a difference of logits that are not: it is as sure as they are
UNITS = 5  # of the type; sound modules of transformers' families take one
POSITIONS = 1024  # a sum of so many in bfloat16, kept in bfloat16, has stopped growing (its 8 bits) or lost a tenth
SUMS = 512  # units of float32: there a sum of n terms is rounded n times, in half types torch sums in float32
MOST_CASTS = 200  # of one pass
MOST_TAKEN = 2**30  # bytes of inputs that are kept


class Seen(NamedTuple):
    """One call of a module, told by what its floating-point tensors held. `types` are those of its inputs and of its outputs."""

    module: str
    turn: int
    fine_inputs: bool
    nan: bool
    plus: bool
    minus: bool
    deep: bool
    types: Tuple[Tuple[Any, ...], Tuple[Any, ...]]


class Watch:
    """`seen` in the order in which the calls ended; `open` the modules that were begun and not ended, the outermost first. The model itself is ``."""

    def __init__(self) -> None:
        self.seen: List[Seen] = []
        self.open: List[str] = []
        self.turns: Dict[str, int] = {}

    def first_bad(self, reference: Watch) -> Optional[Seen]:
        """The innermost module that made inf or nan out of fine inputs, where `reference` has none; None where none did."""
        known = {(one.module, one.turn): one for one in reference.seen}
        for one in self.seen:
            other = known.get((one.module, one.turn))
            bad = one.nan or one.plus or (one.minus and not (other is not None and (other.deep or other.minus)))
            if bad and one.fine_inputs and not (other is not None and (other.nan or other.plus)):
                return one
        return None

    def widener(self, narrow: Any) -> Optional[str]:
        """The innermost module that gave float32 though all that it was given was `narrow`; None where none did."""
        for one in self.seen:
            given, gave = one.types
            if torch.float32 in gave and all(kind is narrow for kind in given) and narrow not in gave:
                return one.module
        return None


@contextlib.contextmanager
def watched(model: Any) -> Iterator[Watch]:
    """Watch all calls of the modules of `model`, itself too, while it is open."""
    watch = Watch()
    begun: List[Tuple[bool, Tuple[Any, ...]]] = []

    def hooks(name: str) -> Tuple[Any, Any]:
        def before(_: Any, args: Any, kwargs: Any) -> None:
            watch.open.append(name)
            floats = _floats((args, kwargs))
            begun.append((not any(bool((one.isnan() | (one == math.inf)).any()) for one in floats), tuple(one.dtype for one in floats)))

        def after(_: Any, __: Any, output: Any) -> None:
            watch.open.pop()
            fine, types = begun.pop()
            watch.turns[name] = watch.turns.get(name, 0) + 1
            if len(watch.seen) < 20000:
                watch.seen.append(Seen(name, watch.turns[name], fine, *_held(_floats(output)), (types, tuple(one.dtype for one in _floats(output)))))

        return before, after

    handles = []
    for name, module in model.named_modules():
        before, after = hooks(name)
        handles += [module.register_forward_pre_hook(before, with_kwargs=True), module.register_forward_hook(after)]
    try:
        yield watch
    finally:
        for handle in handles:
            handle.remove()


def _floats(values: Any) -> List[Any]:
    found = leaves_of(values if isinstance(values, (torch.Tensor, list, tuple, dict)) or hasattr(values, "items") else getattr(values, "__dict__", {}))
    return [one.detach() for one in found.values() if one.is_floating_point()]


def _held(floats: List[Any]) -> Tuple[bool, bool, bool, bool]:
    nan = any(bool(one.isnan().any()) for one in floats)
    plus = any(bool((one == math.inf).any()) for one in floats)
    minus = any(bool((one == -math.inf).any()) for one in floats)
    return nan, plus, minus, any(one.numel() > 0 and float(one.min()) < DEEP for one in floats)


def is_own(module: Any) -> bool:
    """Is it somebody's code, and no layer of torch's, whose precision is torch's own care?"""
    return not type(module).__module__.startswith("torch.")


# ---- casts by hand


class Cast(NamedTuple):
    """A cast down to `kind`. `fed` says that what was cast hangs on weights or on the batch, and is no table of constants."""

    kind: Any
    fed: bool


class _Casts(TorchDispatchMode):  # type: ignore[misc]  # torch gives it no type
    def __init__(self, told: Callable[[Any, Any], None]) -> None:
        super().__init__()
        self.told = told

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and out.dtype in (torch.float16, torch.bfloat16) and "_to_copy" in str(function):
            self.told(args[0], out.dtype)
        return out


def casts_of(model: Any, runs: Sequence[Callable[[], Any]]) -> Dict[str, Cast]:
    """Return the modules in whose own code a float32 run casts down to a half type; the model itself is ``.

    `runs` are passes with batches of one size and other values: what is cast and is the same in all of them, and has no gradient, is a table of constants.
    """
    seen: List[List[Tuple[str, Any, Any]]] = []
    for run in runs:
        with watched(model) as watch:
            mine: List[Tuple[str, Any, Any]] = []

            def told(given: Any, kind: Any, watch: Watch = watch, mine: List[Tuple[str, Any, Any]] = mine) -> None:
                if len(mine) < MOST_CASTS:
                    mine.append((watch.open[-1] if watch.open else "", kind, given if given.requires_grad else given.detach().clone()))

            with _Casts(told):
                run()
        seen.append(mine)
    found: Dict[str, Cast] = {}
    for place, (name, kind, given) in enumerate(seen[0]):
        others = [many[place][2] for many in seen[1:] if place < len(many)]
        fed = given.requires_grad or len(others) < len(seen) - 1 or any(one.shape != given.shape or not torch.equal(one, given) for one in others)
        if name not in found or (fed and not found[name].fed):
            found[name] = Cast(kind, fed)
    return found


# ---- one module by itself


class Taken(NamedTuple):
    """What the first call of a module was given."""

    module: str
    args: Any
    kwargs: Any


@contextlib.contextmanager
def taking(model: Any) -> Iterator[List[Taken]]:
    """Keep what the modules that are no layer of torch's are given in their first call, the innermost first, while it is open."""
    taken: List[Taken] = []
    begun: Dict[str, Taken] = {}
    size = [0]

    def hooks(name: str) -> Tuple[Any, Any]:
        def before(_: Any, args: Any, kwargs: Any) -> None:
            if name not in begun and size[0] < MOST_TAKEN:
                given = rebuilt((args, kwargs), lambda _, one: one.detach().clone())
                size[0] += sum(one.numel() * one.element_size() for one in leaves_of(given).values())
                begun[name] = Taken(name, *given)

        def after(*_: Any) -> None:
            one = begun.get(name)
            if one is not None and not any(one is other for other in taken):
                taken.append(one)

        return before, after

    handles = []
    for name, module in model.named_modules():
        if is_own(module) and not isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict)):
            before, after = hooks(name)
            handles += [module.register_forward_pre_hook(before, with_kwargs=True), module.register_forward_hook(after)]
    try:
        yield taken
    finally:
        for handle in handles:
            handle.remove()


class Own(NamedTuple):
    """What a module did by itself: `error` that its own code adds, and what `allowed` is, both relative; `overflow` at how many times its inputs, 0 for never.

    `norm` is true where that was a norm, which must bear any size; `grows` where the wide result had grown more than the inputs, as exponentials and powers do.
    """

    error: float
    allowed: float
    overflow: float
    norm: bool
    grows: bool = False


def alone(narrow: Any, wide: Any, taken: Taken, dtype: Any, seed: int = 0) -> Optional[Own]:
    """Give one call to a module in `dtype` and to the same in a wider type; None where it cannot be called by itself.

    The wide one is given the very numbers that the narrow one gets, so that what differs is what its own code adds. How much a sound code may add is asked of
    the wide one: what comes of inputs and weights that differ in the last digit. Five times that and five units of the type are allowed: a module of some tens of
    operations, each rounded once (Higham, Accuracy and Stability of Numerical Algorithms, 2002, §3: errors add as the root of their number, seldom more).
    """
    wider = next((one.dtype for one in wide.parameters() if one.is_floating_point()), torch.float64 if dtype is torch.float32 else torch.float32)
    unit = torch.finfo(dtype).eps
    try:
        given = _cast((taken.args, taken.kwargs), dtype)
        right = _called(wide, _cast(given, wider), seed)
        again = _called(wide, _cast(given, wider), seed)
        got = _called(narrow, given, seed)
        shaken = [_moved(wide, _cast(given, wider), unit, draw, seed) for draw in (1, 2)]
    except Exception:
        return None  # what is raised in the run of the whole is told there; by itself it may lack what the whole gives it
    if not right or any(lost(one, other) > unit for one, other in zip(right, again)) or len(got) != len(right):
        return None
    error = max(lost(one, other) for one, other in zip(got, right))
    units = SUMS if dtype is torch.float32 else UNITS
    allowed = units * unit + UNITS * max(lost(one, other) for many in shaken for one, other in zip(many, right))
    if dtype is torch.bfloat16 and error <= allowed:
        error = max(error, _long(narrow, wide, given, wider, seed))
    level, norm, grows = (0.0, False, False) if dtype is not torch.float16 else _overflows(narrow, wide, given, right, wider, seed)
    return Own(error, allowed, level, norm, grows)


def _long(narrow: Any, wide: Any, given: Any, wider: Any, seed: int) -> float:
    """The error over many positions, all above zero, of a module that is given one sequence: where a sum is kept in the type itself, it stops growing."""
    floats = leaves_of(given)
    sequence = next(iter(floats.values()), None)
    if sequence is None or len(floats) != 1 or not sequence.is_floating_point() or sequence.dim() != 3 or not sequence.numel():
        return 0.0
    many = rebuilt(given, lambda _, one: one[:1].abs().repeat(1, -(-POSITIONS // one.shape[1]), 1)[:, :POSITIONS])
    try:
        right, again, got = _called(wide, _cast(many, wider), seed), _called(wide, _cast(many, wider), seed), _called(narrow, many, seed)
    except Exception:
        return 0.0  # it does not take as many
    if len(got) != len(right) or any(lost(one, other) > 0 for one, other in zip(again, right)):
        return 0.0
    return max((lost(one, other) for one, other in zip(got, right)), default=0.0)


def _overflows(narrow: Any, wide: Any, given: Any, right: List[Any], wider: Any, seed: int) -> Tuple[float, bool, bool]:
    first = next((name for name, one in leaves_of(given).items() if one.is_floating_point()), None)
    if first is None:
        return 0.0, False, False
    biggest = float(leaves_of(given)[first].abs().max()) if leaves_of(given)[first].numel() else 0.0
    if not 0 < biggest < LARGEST_INPUT:
        return 0.0, False, False
    with contextlib.suppress(Exception):
        for level in (1.0, *LEVELS):
            if level > 1 and biggest * level > LARGEST_INPUT:
                break
            more = _times(given, first, level)
            wanted = _called(wide, _cast(more, wider), seed)
            if not all(bool(one.isfinite().all()) and float(one.abs().max()) < 8e3 for one in wanted if one.numel()):
                break
            if not all(bool(one.isfinite().all()) for one in _called(narrow, more, seed)):
                return level, False, level > 1 and _largest(wanted) > GROWS * level * _largest(right)
        louder = _called(wide, _cast(_times(given, first, 16.0), wider), seed)
        if all(lost(one, other) < 1e-2 for one, other in zip(louder, right)):  # what does not ask how large its input is: a norm
            more = _times(given, first, OUTLIER / biggest)
            wanted, got = _called(wide, _cast(more, wider), seed), _called(narrow, more, seed)
            if any(lost(one, other) > 0.1 for one, other in zip(got, wanted)):
                return OUTLIER / biggest, True, False
    return 0.0, False, False


def _largest(values: List[Any]) -> float:
    return max((float(one.abs().max()) for one in values if one.numel()), default=0.0)


def lost(one: Any, other: Any) -> float:
    """The difference that four of five elements keep within, relative to the root mean square of `other`.

    Not the largest: where a module routes or picks, a few rows turn over with the last digit, and that is no fault of its arithmetic.
    """
    if one.shape != other.shape:
        return math.inf
    first, second = one.detach().double().flatten()[:2000000], other.detach().double().flatten()[:2000000]
    fine = second.isfinite() & (second > DEEP)
    if not bool(fine.any()):
        return 0.0
    if not bool(first[fine].isfinite().all()):
        return math.inf
    apart = (first[fine] - second[fine]).abs()
    return float(apart.kthvalue(max(1, math.ceil(0.8 * apart.numel()))).values) / max(
        float(second[fine].pow(2).mean().sqrt()), LEAST_LOSS if second.numel() == 1 else 1e-9
    )


def _called(module: Any, given: Any, seed: int) -> List[Any]:
    args, kwargs = rebuilt(given, lambda _, one: one.clone())
    torch.manual_seed(seed)
    with torch.enable_grad():  # as in training: without it torch's own layers take other ways
        return _floats(module(*args, **kwargs))


def _cast(given: Any, dtype: Any) -> Any:
    """All floating-point tensors in `dtype`; the finite stay finite, as the numbers that masks are filled with are the type's own in a model of that type."""
    limit = torch.finfo(dtype)

    def cast(_: str, one: Any) -> Any:
        if not one.is_floating_point():
            return one
        if torch.finfo(one.dtype).max > limit.max:
            one = torch.where(one.isfinite(), one.clamp(limit.min, limit.max), one)
        return one.to(dtype)

    return rebuilt(given, cast)


def _times(given: Any, name: str, level: float) -> Any:
    return rebuilt(given, lambda mine, one: one * level if mine == name else one)


def _moved(module: Any, given: Any, unit: float, draw: int, seed: int) -> List[Any]:
    """What it gives for inputs and weights that differ in the last digit of the narrow type.

    Each operation rounds, also deep inside: weights that differ stand for that.
    """
    before = {name: one.detach().clone() for name, one in module.named_parameters()}
    with torch.no_grad():
        for name, one in module.named_parameters():
            one.copy_(_shaken(before[name], unit, draw))
    try:
        return _called(module, _shaken(given, unit, draw), seed)
    finally:
        with torch.no_grad():
            for name, one in module.named_parameters():
                one.copy_(before[name])


def _shaken(given: Any, unit: float, seed: int) -> Any:
    draw = torch.Generator().manual_seed(seed)

    def shake(_: str, one: Any) -> Any:
        return one * (1 + 0.5 * unit * torch.randn(one.shape, generator=draw).to(one)) if one.is_floating_point() else one

    return rebuilt(given, shake)
