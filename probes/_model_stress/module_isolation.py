"""Finds the modules whose own code makes two runs differ.

The second run is repaired call by call: whatever should equal the first run, and does not, is put
back on entry to and on return from each module. A module that still differs cannot have it from the
modules before it, nor from its own children.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from _model_stress.findings import gap
from _model_stress.module_hooks import hooked

Key = Tuple[str, int]


class View(NamedTuple):
    """How tensors of a run match those of an earlier one. `rows` x `length` are this batch's sizes,
    `kept` the positions that count.

    The earlier run has the same sizes or, with `row`, only that row, or only its positions in
    `kept`. `pooled`: tensors without positions count too. `only`: the rows that count, where both
    have all.
    """

    rows: int
    length: int
    kept: List[int]
    row: Optional[int] = None
    pooled: bool = True
    only: Optional[List[int]] = None


def aligned(new: Any, old: Any, view: View) -> Optional[Tuple[Tuple[Any, ...], Tuple[Any, ...]]]:
    """Indices of the comparable part of a tensor and its counterpart; None without one."""
    if new.dim() != old.dim() or new.dim() == 0:
        return None
    short, placed = len(view.kept), False
    mine = (
        [view.row]
        if view.row is not None
        else view.only
        if view.only is not None
        else list(range(view.rows))
    )
    theirs, was_rows = ([0], 1) if view.row is not None else (mine, view.rows)
    picks: List[Tuple[List[int], List[int]]] = []
    for axis, (size, was) in enumerate(zip(new.shape, old.shape)):
        front = size - view.length  # a token that the model puts before all others
        if front in (0, 1) and was in (view.length + front, short + front):
            here = [*range(front), *(item + front for item in view.kept)]
            picks.append((here, here if was == size else list(range(short + front))))
            placed = True
        elif axis == 0 and size == view.rows and was == was_rows:
            picks.append((mine, theirs))
        elif (
            axis == 0
            and size == view.rows * view.length
            and was in (was_rows * view.length, was_rows * short)
        ):
            wide = was // was_rows
            inner = view.kept if wide == view.length else list(range(short))
            picks.append(
                (
                    [row * view.length + item for row in mine for item in view.kept],
                    [row * wide + item for row in theirs for item in inner],
                )
            )
            placed = True
        elif size == was:
            picks.append((list(range(size)), list(range(size))))
        else:
            return None
    if not placed and not view.pooled:
        return None
    return _mesh([item for item, _ in picks], new.device), _mesh(
        [item for _, item in picks], old.device
    )


def _mesh(picks: List[List[int]], device: Any) -> Tuple[Any, ...]:
    wide = len(picks)
    return tuple(
        torch.tensor(item, device=device).reshape(
            [-1 if axis == own else 1 for axis in range(wide)]
        )
        for own, item in enumerate(picks)
    )


def apart(new: Any, old: Any, view: View) -> float:
    """How much two tensors differ in their comparable part; 0 where they cannot be compared."""
    found = aligned(new, old, view)
    if found is None:
        return 0.0
    item, other = new[found[0]], old[found[1]]
    return gap(item, other)


class RecordedRun(NamedTuple):
    """The floating-point inputs and outputs of each call, by module and turn, then by name."""

    inputs: Dict[Key, Dict[str, Any]]
    gave: Dict[Key, Dict[str, Any]]

    @property
    def modules(self) -> Set[str]:
        return {name for name, _ in self.gave}


def recorded(model: Any, run: Callable[[], Any]) -> RecordedRun:
    """Run, and return the inputs and outputs of every call of a module."""
    calls = RecordedRun({}, {})

    def entering(key: Key, _caller: str, inputs: Any) -> None:
        calls.inputs[key] = _copies(floats(inputs))

    def leaving(key: Key, output: Any) -> None:
        calls.gave[key] = _copies(floats(output))

    with _around_calls(model, entering, leaving):
        run()
    return calls


def mended(
    model: Any, run: Callable[[], Any], before: RecordedRun, view: View, tolerance: float
) -> Dict[str, float]:
    """Run, and put back what differs from `before` in each call. Returns the modules whose own code
    differed, with the difference: the module for its output, its caller for its input.
    """
    guilty: Dict[str, float] = {}

    def mend(values: Any, was: Dict[str, Any], blame: str) -> Any:
        worst = 0.0

        def put_back(name: str, tensor: Any) -> Any:
            nonlocal worst
            old = was.get(name)
            found = (
                aligned(tensor, old, view)
                if old is not None and tensor.is_floating_point()
                else None
            )
            if found is None or old is None:
                return tensor
            off = gap(tensor[found[0]], old[found[1]])
            if off == 0:
                return tensor
            worst = max(worst, off)
            fixed = tensor.clone()
            fixed[found[0]] = old[found[1]].to(fixed)
            return fixed

        changed = rebuilt(values, put_back)
        if worst > tolerance:
            guilty[blame] = max(worst, guilty.get(blame, 0.0))
        return changed

    def entering(key: Key, caller: str, inputs: Any) -> Any:
        return mend(inputs, before.inputs.get(key, {}) if key[0] else {}, caller)

    def leaving(key: Key, output: Any) -> Any:
        return mend(output, before.gave.get(key, {}), key[0])

    with _around_calls(model, entering, leaving):
        run()
    return guilty


def given_other(
    model: Any, run: Callable[[], Any], again: Callable[[], Any], right: Callable[[Any], bool]
) -> Set[str]:
    """The modules given something else in the second run though every earlier module returned the
    same. What differs must be `right`, or the module is left out. The model itself is always
    included.
    """
    was: Dict[Key, Dict[str, Any]] = {}
    gave: Dict[Key, Dict[str, Any]] = {}
    other: Set[str] = {""}

    def first(key: Key, _caller: str, inputs: Any) -> None:
        was[key] = _copies(tensors(inputs))

    def first_gave(key: Key, output: Any) -> None:
        gave[key] = _copies(floats(output))

    def second(key: Key, _caller: str, inputs: Any) -> None:
        now, before = tensors(inputs), was.get(key, {})
        new = [
            item
            for name, item in now.items()
            if name not in before
            or item.shape != before[name].shape
            or not torch.equal(item, before[name])
        ]
        if (new or set(now) != set(before)) and all(right(item) for item in new):
            other.add(key[0])

    def as_before(key: Key, output: Any) -> Any:
        old = gave.get(key, {})
        return rebuilt(
            output,
            lambda name, tensor: (
                old[name].clone() if name in old and old[name].shape == tensor.shape else tensor
            ),
        )

    with _around_calls(model, first, first_gave):
        run()
    with _around_calls(model, second, as_before):
        again()
    return other


def inputs_of(model: Any, run: Callable[[], Any]) -> Dict[str, Dict[str, Any]]:
    """All input tensors of the first call of each module."""
    found: Dict[str, Dict[str, Any]] = {}

    def entering(key: Key, _caller: str, inputs: Any) -> None:
        found.setdefault(key[0], _copies(tensors(inputs)))

    with _around_calls(model, entering, lambda _key, _output: None):
        run()
    return found


@contextlib.contextmanager
def _around_calls(
    model: Any, entering: Callable[[Key, str, Any], Any], leaving: Callable[[Key, Any], Any]
) -> Iterator[None]:
    """Call `entering(key, caller, (args, kwargs))` and `leaving(key, output)`; both may replace."""
    turns: Dict[str, int] = {}
    open_calls: List[Key] = [("", 0)]

    def before(name: str, args: Any, kwargs: Any) -> Any:
        turns[name] = turns.get(name, 0) + 1
        changed = entering((name, turns[name]), open_calls[-1][0], (args, kwargs))
        open_calls.append((name, turns[name]))
        return changed

    def after(_name: str, output: Any) -> Any:
        return leaving(open_calls.pop(), output)

    with hooked(model, before, after), torch.no_grad():
        yield


def _copies(found: Dict[str, Any]) -> Dict[str, Any]:
    return {name: item.detach().clone() for name, item in found.items()}


def tensors(values: Any) -> Dict[str, Any]:
    """All dense tensors in nested containers and dataclasses, by name."""
    found: Dict[str, Any] = {}
    rebuilt(values, found.setdefault)
    return found


def floats(values: Any) -> Dict[str, Any]:
    """The floating-point ones of `tensors`."""
    return {name: item for name, item in tensors(values).items() if item.is_floating_point()}


def rebuilt(value: Any, change: Callable[[str, Any], Any], name: str = "") -> Any:
    """`value` with its dense tensors changed; an object that cannot be rebuilt stays as it is."""
    if isinstance(value, torch.Tensor):
        return value if value.is_nested or value.layout != torch.strided else change(name, value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {
            item.name: rebuilt(getattr(value, item.name), change, f"{name}.{item.name}")
            for item in dataclasses.fields(value)
        }
        try:
            return type(value)(**parts)
        except Exception:  # a class of its own that wants more than its fields
            return value
    if isinstance(value, dict):
        changed = {key: rebuilt(item, change, f"{name}.{key}") for key, item in value.items()}
        try:
            return type(value)(changed)
        except Exception:  # a dict that is built in another way
            return value
    if isinstance(value, (list, tuple)):
        items = [rebuilt(item, change, f"{name}.{place}") for place, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def own_code(module: Any) -> bool:
    """Whether its forward is the user's (or another library's), and not torch's own."""
    return "forward" in vars(module) or not type(module).__module__.startswith("torch.")


def blamed(model: Any, guilty: List[str], knowing: Set[str], called: Set[str]) -> List[str]:
    """Names for the guilty, in order: the innermost that receives what it must know (`knowing`) and
    runs its own code.

    A module without a mask cannot heed it: the one that did not pass it on is named. None is named
    that holds a correct module of the same class. The model goes by its class.
    """
    modules = dict(model.named_modules())
    names: List[str] = []
    for item in guilty:
        twins = [
            name
            for name in called
            if name not in guilty and type(modules.get(name)) is type(modules[item])
        ]
        at = item
        while at and not (at in knowing and own_code(modules[at])):
            up = at.rpartition(".")[0]
            if any(not up or name.startswith(up + ".") for name in twins):
                break
            at = up
        names.append(at or type(model).__name__)
    return list(dict.fromkeys(names))
