"""What a model's modules hold, by dotted name: parameters, buffers, and the tensors, numbers and random states in plain attributes."""

from __future__ import annotations

import contextlib
import copy
import random
from collections import deque
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

PARAMETER, BUFFER, ATTRIBUTE = "parameter", "buffer", "attribute"
NUMBERS = (bool, int, float, complex, str, type(None))
DEPTH, MOST = 4, 4000  # of containers in attributes: what is deeper or more is not a model's state
OTHERS = frozenset(
    [
        "torch",
        "torchvision",
        "torchaudio",
        "numpy",
        "transformers",
        "tokenizers",
        "accelerate",
        "peft",
        "lightning",
        "pytorch_lightning",
        "lightning_fabric",
        "torchmetrics",
        "builtins",
        "collections",
        "functools",
        "typing",
        "logging",
        "threading",
        "re",
        "pathlib",
        "types",
        "abc",
    ]
)


class Held(NamedTuple):
    """One parameter, buffer or attribute. `leaves` are copies of what is in it, by key: `` for the thing itself, `0` or `a.b` inside a container.

    `whole` is a copy of a container, for where it must be put into a model whose own has other keys; None where it cannot be copied.
    """

    kind: str
    leaves: Dict[str, Any]
    whole: Any = None

    @property
    def tensors(self) -> bool:
        return any(isinstance(one, torch.Tensor) for one in self.leaves.values())


class Cell(NamedTuple):
    """A live value with the way to put another in its place."""

    value: Any
    put: Callable[[Any], None]


def snapshot(model: Any) -> Dict[str, Held]:
    """Return all that the model holds now, copied, in the order of its modules."""
    found: Dict[str, Held] = {}
    for name, (kind, cells, raw) in _walk(model).items():
        leaves = {key: _copied(cell.value) for key, cell in cells.items()}
        whole = _rebuilt(raw) if kind == ATTRIBUTE else None
        found[name] = Held(kind, leaves, whole)
    return found


def differing(one: Dict[str, Held], other: Dict[str, Held]) -> List[str]:
    """Return the names that are in the first and are otherwise, or not at all, in the second."""
    return [name for name, held in one.items() if name not in other or apart(held, other[name])]


def apart(one: Held, other: Held) -> List[str]:
    """Return the keys of the leaves that differ, bit by bit."""
    keys = list(dict.fromkeys([*one.leaves, *other.leaves]))
    return [key for key in keys if key not in one.leaves or key not in other.leaves or not same(one.leaves[key], other.leaves[key])]


def put(model: Any, values: Dict[str, Held]) -> None:
    """Put these values into the model, in place where that can be."""
    live = _walk(model)
    for name, held in values.items():
        cells = live[name][1] if name in live else {}
        if set(cells) == set(held.leaves):
            for key, cell in cells.items():
                cell.put(held.leaves[key])
        elif held.whole is not None:
            path, _, attribute = name.rpartition(".")
            vars(model.get_submodule(path))[attribute] = _rebuilt(held.whole)


def loose(model: Any) -> Dict[str, Cell]:
    """Return the floating-point tensors in plain attributes and in modules that the model does not know, by dotted name: no cast of the model reaches them."""
    return {
        f"{name}.{key}" if key else name: cell
        for name, (kind, cells, _) in _walk(model).items()
        for key, cell in cells.items()
        if kind == ATTRIBUTE and isinstance(cell.value, torch.Tensor) and cell.value.is_floating_point()
    }


def unregistered(model: Any) -> Dict[str, List[str]]:
    """Return the attributes with leaf tensors that got a gradient and are no parameters of the model: nothing trains or saves them."""
    found: Dict[str, List[str]] = {}
    for name, (kind, cells, _) in _walk(model).items():
        keys = [key for key, cell in cells.items() if isinstance(cell.value, torch.Tensor) and cell.value.is_leaf and cell.value.grad is not None]
        if kind == ATTRIBUTE and keys:
            found[name] = keys
    return found


def told(name: str, keys: List[str]) -> str:
    """The dotted name: of the attribute, and of the one thing in it where it is one."""
    return f"{name}.{keys[0]}" if len(keys) == 1 and keys[0] else name


def same(one: Any, other: Any) -> bool:
    """Are they equal bit by bit? nan equals nan."""
    if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor) or one.shape != other.shape or one.dtype != other.dtype:
            return False
        return bool(torch.equal(one, other)) or bool(((one == other) | (torch.isnan(one) & torch.isnan(other))).all())
    if type(one) is not type(other):
        return False
    return repr(one) == repr(other)


def sharing(model: Any) -> Set[Tuple[str, ...]]:
    """Return the groups of parameter names that are one tensor."""
    groups: Dict[int, List[str]] = {}
    for name, one in model.named_parameters(remove_duplicate=False):
        groups.setdefault(id(one), []).append(name)
    return {tuple(names) for names in groups.values() if len(names) > 1}


def parted(before: Set[Tuple[str, ...]], model: Any) -> List[str]:
    """Return the names that were one tensor with others, as `sharing` said, and are no longer one with all of them."""
    now = {name: group for group in sharing(model) for name in group}
    return sorted({name for group in before for name in group if not set(group) <= set(now.get(name, ()))})


def _walk(model: Any) -> Dict[str, Tuple[str, Dict[str, Cell], Any]]:
    found: Dict[str, Tuple[str, Dict[str, Cell], Any]] = {}
    known = {id(one) for one in model.modules()} | {id(one) for one in model.parameters()} | {id(one) for one in model.buffers()}
    blank = _blank(model)
    for path, module in model.named_modules():
        prefix = f"{path}." if path else ""
        for kind, registered in ((PARAMETER, module._parameters), (BUFFER, module._buffers)):  # noqa: SLF001 - named_buffers leaves out those that share
            for name, one in registered.items():
                if one is not None and not torch.nn.parameter.is_lazy(one):
                    found[prefix + name] = (kind, {"": Cell(one, _registered(registered, name))}, one)
        for name, value in list(vars(module).items()):
            if name in blank:
                continue
            cells = dict(_cells(value, _attribute(module, name), "", set(known), DEPTH))
            if cells and len(cells) <= MOST:
                found[prefix + name] = (ATTRIBUTE, cells, value)
    return found


def _blank(model: Any) -> Set[str]:
    """The attributes that every module has, and every Lightning module."""
    names = set(vars(torch.nn.Module()))
    for kind in type(model).__mro__:
        if kind.__name__ == "LightningModule" and kind.__module__.split(".")[0] in ("lightning", "pytorch_lightning"):
            with contextlib.suppress(Exception):
                names |= set(vars(kind()))
    return names


def _cells(value: Any, setter: Callable[[Any], None], key: str, seen: Set[int], depth: int) -> Iterator[Tuple[str, Cell]]:
    if id(value) in seen:
        return
    if isinstance(value, torch.Tensor):
        seen.add(id(value))
        yield key, Cell(value, lambda other: _put_tensor(value, other, setter))
    elif isinstance(value, NUMBERS) or type(value).__module__ == "numpy":
        yield key, Cell(value, setter)
    elif isinstance(value, torch.Generator):
        yield key, Cell(bytes(value.get_state().tolist()), lambda state: value.set_state(torch.tensor(list(state), dtype=torch.uint8)))
    elif isinstance(value, random.Random):
        yield key, Cell(value.getstate(), value.setstate)
    elif depth:
        seen.add(id(value))
        for name, one, put_it in _parts(value):
            yield from _cells(one, put_it, f"{key}.{name}" if key else name, seen, depth - 1)


def _parts(value: Any) -> Iterator[Tuple[str, Any, Callable[[Any], None]]]:
    if isinstance(value, dict):
        for name, one in list(value.items()):
            yield str(name), one, _item(value, name)
    elif isinstance(value, (list, deque)):
        for place, one in enumerate(list(value)):
            yield str(place), one, _item(value, place)
    elif isinstance(value, tuple):
        for place, one in enumerate(value):
            yield str(place), one, _fixed
    elif isinstance(value, torch.nn.Module):
        yield from _parts_of_module(value)
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value) and type(value).__module__.split(".")[0] not in OTHERS:
        for name, one in list(vars(value).items()):
            yield name, one, _item(vars(value), name)


def _parts_of_module(module: Any) -> Iterator[Tuple[str, Any, Callable[[Any], None]]]:
    """One in a plain container: the model does not know it."""
    for registered in (module._parameters, module._buffers):  # noqa: SLF001
        for name, one in registered.items():
            if one is not None:
                yield name, one, _registered(registered, name)
    for name, child in module.named_children():
        yield name, child, _fixed


def _put_tensor(live: Any, other: Any, setter: Callable[[Any], None]) -> None:
    if isinstance(other, torch.Tensor) and other.shape == live.shape and other.dtype == live.dtype:
        with torch.no_grad():
            live.data.copy_(other)
    else:
        setter(_copied(other))


def _registered(holder: Dict[str, Any], name: str) -> Callable[[Any], None]:
    def put_it(value: Any) -> None:
        live: Optional[Any] = holder.get(name)
        if live is not None and live.shape == value.shape and live.dtype == value.dtype:
            with torch.no_grad():
                live.data.copy_(value)
        else:
            holder[name] = torch.nn.Parameter(value.clone()) if isinstance(live, torch.nn.Parameter) else value.clone()

    return put_it


def _attribute(module: Any, name: str) -> Callable[[Any], None]:
    return _item(vars(module), name)


def _item(holder: Any, key: Any) -> Callable[[Any], None]:
    def put_it(value: Any) -> None:
        holder[key] = value

    return put_it


def _fixed(_: Any) -> None:
    """A place in a tuple: only what is in it can change."""


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return value if isinstance(value, NUMBERS) else copy.deepcopy(value)


def _rebuilt(value: Any) -> Any:
    """A copy of a tensor, a number or a container of such; None of anything else."""
    if isinstance(value, dict):
        return {key: _rebuilt(one) for key, one in value.items()}
    if isinstance(value, deque):
        return deque((_rebuilt(one) for one in value), value.maxlen)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_rebuilt(one) for one in value)
    if isinstance(value, (torch.Tensor, *NUMBERS)) or type(value).__module__ == "numpy":
        return _copied(value)
    return None
