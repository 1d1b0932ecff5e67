"""Which module's own code makes two runs differ: it is given what it had before, so far as that is meant to stay, and gives something else.

The second run is mended call by call: what should be equal and is not is put back as each module returns it. A module that is found to differ then
cannot have it from those before it, nor from its own children.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from _stress.look import gap

Key = Tuple[str, int]
Calls = Dict[Key, Dict[str, Any]]


class View(NamedTuple):
    """How tensors of a run lie beside those of an earlier one. `rows` x `length` are the sizes of this run's batch, `kept` its positions that count.

    The earlier one has the same sizes, or, with `row`, only that row, and of it only the positions in `kept` (`len(kept)` of them).
    `pooled`: tensors without an axis of positions count too. `only`: the rows that count, where both have all.
    """

    rows: int
    length: int
    kept: List[int]
    row: Optional[int] = None
    pooled: bool = True
    only: Optional[List[int]] = None


def aligned(new: Any, old: Any, view: View) -> Optional[Tuple[Tuple[Any, ...], Tuple[Any, ...]]]:
    """Indices that pick what counts out of a tensor of this run and out of its counterpart; None where they cannot be laid beside each other."""
    if new.dim() != old.dim() or new.dim() == 0:
        return None
    short, placed = len(view.kept), False
    mine = [view.row] if view.row is not None else view.only if view.only is not None else list(range(view.rows))
    theirs, was_rows = ([0], 1) if view.row is not None else (mine, view.rows)
    picks: List[Tuple[List[int], List[int]]] = []
    for axis, (size, was) in enumerate(zip(new.shape, old.shape)):
        if size == view.length and was in (view.length, short):
            picks.append((view.kept, view.kept if was == view.length else list(range(short))))
            placed = True
        elif axis == 0 and size == view.rows and was == was_rows:
            picks.append((mine, theirs))
        elif axis == 0 and size == view.rows * view.length and was in (was_rows * view.length, was_rows * short):
            wide = was // was_rows
            inner = view.kept if wide == view.length else list(range(short))
            picks.append(([row * view.length + one for row in mine for one in view.kept], [row * wide + one for row in theirs for one in inner]))
            placed = True
        elif size == was:
            picks.append((list(range(size)), list(range(size))))
        else:
            return None
    if not placed and not view.pooled:
        return None
    return _mesh([one for one, _ in picks], new.device), _mesh([one for _, one in picks], old.device)


def _mesh(picks: List[List[int]], device: Any) -> Tuple[Any, ...]:
    wide = len(picks)
    return tuple(torch.tensor(one, device=device).reshape([-1 if axis == own else 1 for axis in range(wide)]) for own, one in enumerate(picks))


def apart(new: Any, old: Any, view: View) -> float:
    """How far apart two tensors are in what counts; 0 where they cannot be laid beside each other."""
    found = aligned(new, old, view)
    if found is None:
        return 0.0
    one, other = new[found[0]], old[found[1]]
    return gap(one, other)


def recorded(model: Any, run: Callable[[], Any]) -> Calls:
    """Run, and return what every call of a module gave: floating-point tensors by name, by the module's dotted name and its turn."""
    calls: Calls = {}

    def record(key: Key, _given: Any, output: Any) -> None:
        calls[key] = {name: one.detach().clone() for name, one in floats(output).items()}

    with _hooked(model, record):
        run()
    return calls


def mended(model: Any, run: Callable[[], Any], before: Calls, view: View, tolerance: float) -> Dict[str, float]:
    """Run, mending each call's outputs where they count by those in `before`; return the modules that had to be mended, with how far they were off."""
    guilty: Dict[str, float] = {}

    def mend(key: Key, _given: Any, output: Any) -> Any:
        was = before.get(key, {})
        worst = 0.0

        def put_back(name: str, tensor: Any) -> Any:
            nonlocal worst
            old = was.get(name)
            found = aligned(tensor, old, view) if old is not None else None
            if found is None or old is None:
                return tensor
            worst = max(worst, gap(tensor[found[0]], old[found[1]]))
            fixed = tensor.clone()
            fixed[found[0]] = old[found[1]].to(fixed)
            return fixed

        changed = rebuilt(output, put_back)
        if worst > tolerance:
            guilty[key[0]] = max(worst, guilty.get(key[0], 0.0))
        return changed

    with _hooked(model, mend):
        run()
    return guilty


def given_other(model: Any, run: Callable[[], Any], again: Callable[[], Any]) -> Set[str]:
    """The modules that are given something else in the second run although every module before them returned the same as in the first."""
    was: Dict[Key, Dict[str, Any]] = {}
    outputs: Dict[Key, Any] = {}
    other: Set[str] = set()

    def first(key: Key, given: Any, output: Any) -> None:
        was[key] = {name: one.detach().clone() for name, one in tensors(given).items()}
        outputs[key] = {name: one.detach().clone() for name, one in floats(output).items()}

    def second(key: Key, given: Any, output: Any) -> Any:
        now = tensors(given)
        before = was.get(key)
        if before is not None and (
            set(now) != set(before) or any(one.shape != before[name].shape or not torch.equal(one, before[name]) for name, one in now.items())
        ):
            other.add(key[0])
        old = outputs.get(key, {})
        return rebuilt(output, lambda name, tensor: old[name].clone() if name in old and old[name].shape == tensor.shape else tensor)

    with _hooked(model, first):
        run()
    with _hooked(model, second):
        again()
    return other | {""}


def inputs_of(model: Any, run: Callable[[], Any]) -> Dict[str, Dict[str, Any]]:
    """All tensors that each module was given in its first call."""
    found: Dict[str, Dict[str, Any]] = {}

    def record(key: Key, given: Any, _output: Any) -> None:
        found.setdefault(key[0], {name: one.detach().clone() for name, one in tensors(given).items()})

    with _hooked(model, record):
        run()
    return found


@contextlib.contextmanager
def _hooked(model: Any, what: Callable[[Key, Any, Any], Any]) -> Iterator[None]:
    turns: Dict[str, int] = {}

    def hook(name: str) -> Any:
        def ended(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
            turns[name] = turns.get(name, 0) + 1
            return what((name, turns[name]), (args, kwargs), output)

        return ended

    hooks = [module.register_forward_hook(hook(name), with_kwargs=True) for name, module in model.named_modules()]
    try:
        with torch.no_grad():
            yield
    finally:
        for one in hooks:
            one.remove()


def tensors(values: Any) -> Dict[str, Any]:
    """All dense tensors in nested containers and dataclasses, by name."""
    found: Dict[str, Any] = {}
    rebuilt(values, found.setdefault)
    return found


def floats(values: Any) -> Dict[str, Any]:
    """The floating-point ones of `tensors`."""
    return {name: one for name, one in tensors(values).items() if one.is_floating_point()}


def rebuilt(value: Any, change: Callable[[str, Any], Any], name: str = "") -> Any:
    """Return `value` with its dense tensors changed, of the same types; what cannot be built again is returned as it is."""
    if isinstance(value, torch.Tensor):
        return value if value.is_nested or value.layout != torch.strided else change(name, value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: rebuilt(getattr(value, one.name), change, f"{name}.{one.name}") for one in dataclasses.fields(value)}
        try:
            return type(value)(**parts)
        except Exception:
            return value
    if isinstance(value, dict):
        changed = {key: rebuilt(one, change, f"{name}.{key}") for key, one in value.items()}
        try:
            return type(value)(changed)
        except Exception:
            return value
    if isinstance(value, (list, tuple)):
        items = [rebuilt(one, change, f"{name}.{place}") for place, one in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def own_code(module: Any) -> bool:
    """Is its forward the user's (or another library's), and not torch's own?"""
    return "forward" in vars(module) or not type(module).__module__.startswith("torch.")


def blamed(model: Any, guilty: List[str], knowing: Set[str], called: Set[str]) -> List[str]:
    """Names for those that were found guilty, the first first: the innermost that is told what it would have to know (`knowing`) and runs code of its own.

    A module that is given no mask cannot heed it: the one that was given it and did not pass it on is named. None is named that holds a module of the
    same class that did right: then the fault is nearer. The model itself goes by the name of its class.
    """
    modules = dict(model.named_modules())
    names: List[str] = []
    for one in guilty:
        twins = [name for name in called if name not in guilty and type(modules.get(name)) is type(modules[one])]
        at = one
        while at and not (at in knowing and own_code(modules[at])):
            up = at.rpartition(".")[0]
            if any(not up or name.startswith(up + ".") for name in twins):
                break
            at = up
        names.append(at or type(model).__name__)
    return list(dict.fromkeys(names))
