"""A model's state by dotted name: parameters, buffers, and values in plain attributes."""

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


class StateEntry(NamedTuple):
    """One parameter, buffer or attribute. `leaves` are copies by key: "" for the thing itself, `0`
    or `a.b` inside a container. `whole` is a copy of a container, None where it cannot be copied.
    """

    kind: str
    leaves: Dict[str, Any]
    whole: Any = None

    @property
    def tensors(self) -> bool:
        return any(isinstance(item, torch.Tensor) for item in self.leaves.values())


class StateSlot(NamedTuple):
    """A live value with the way to put another in its place."""

    value: Any
    put: Callable[[Any], None]


def snapshot(model: Any) -> Dict[str, StateEntry]:
    """Return all that the model holds now, copied, in the order of its modules."""
    found: Dict[str, StateEntry] = {}
    for name, (kind, cells, raw) in _walk(model).items():
        leaves = {key: _copied(cell.value) for key, cell in cells.items()}
        whole = _rebuilt(raw) if kind == ATTRIBUTE else None
        found[name] = StateEntry(kind, leaves, whole)
    return found


def differing(this: Dict[str, StateEntry], other: Dict[str, StateEntry]) -> List[str]:
    """Return the names that are in the first and are otherwise, or not at all, in the second."""
    return [name for name, held in this.items() if name not in other or apart(held, other[name])]


def apart(this: StateEntry, other: StateEntry) -> List[str]:
    """Return the keys of the leaves that differ, bit by bit."""
    keys = list(dict.fromkeys([*this.leaves, *other.leaves]))
    return [
        key
        for key in keys
        if key not in this.leaves
        or key not in other.leaves
        or not same(this.leaves[key], other.leaves[key])
    ]


def put(model: Any, values: Dict[str, StateEntry]) -> None:
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


def loose(model: Any) -> Dict[str, StateSlot]:
    """Floating-point tensors in attributes and unregistered modules, which no cast reaches."""
    return {
        f"{name}.{key}" if key else name: cell
        for name, (kind, cells, _) in _walk(model).items()
        for key, cell in cells.items()
        if kind == ATTRIBUTE
        and isinstance(cell.value, torch.Tensor)
        and cell.value.is_floating_point()
    }


def unregistered(model: Any) -> Dict[str, List[str]]:
    """Attributes with leaf tensors that got a gradient but that nothing trains or saves."""
    found: Dict[str, List[str]] = {}
    for name, (kind, cells, _) in _walk(model).items():
        keys = [
            key
            for key, cell in cells.items()
            if isinstance(cell.value, torch.Tensor)
            and cell.value.is_leaf
            and cell.value.grad is not None
        ]
        if kind == ATTRIBUTE and keys:
            found[name] = keys
    return found


def described(name: str, keys: List[str]) -> str:
    """The dotted name: of the attribute, and of the one thing in it where it is one."""
    return f"{name}.{keys[0]}" if len(keys) == 1 and keys[0] else name


def same(this: Any, other: Any) -> bool:
    """Are they equal bit by bit? nan equals nan."""
    if isinstance(this, torch.Tensor) or isinstance(other, torch.Tensor):
        if (
            not isinstance(this, torch.Tensor)
            or not isinstance(other, torch.Tensor)
            or this.shape != other.shape
            or this.dtype != other.dtype
        ):
            return False
        return bool(torch.equal(this, other)) or bool(
            ((this == other) | (torch.isnan(this) & torch.isnan(other))).all()
        )
    if type(this) is not type(other):
        return False
    return repr(this) == repr(other)


def sharing(model: Any) -> Set[Tuple[str, ...]]:
    """Return the groups of parameter names that are one tensor."""
    groups: Dict[int, List[str]] = {}
    for name, item in model.named_parameters(remove_duplicate=False):
        groups.setdefault(id(item), []).append(name)
    return {tuple(names) for names in groups.values() if len(names) > 1}


def parted(before: Set[Tuple[str, ...]], model: Any) -> List[str]:
    """The names that shared one tensor, as `sharing` said, and no longer do."""
    now = {name: group for group in sharing(model) for name in group}
    return sorted(
        {name for group in before for name in group if not set(group) <= set(now.get(name, ()))}
    )


def _walk(model: Any) -> Dict[str, Tuple[str, Dict[str, StateSlot], Any]]:
    found: Dict[str, Tuple[str, Dict[str, StateSlot], Any]] = {}
    known = (
        {id(item) for item in model.modules()}
        | {id(item) for item in model.parameters()}
        | {id(item) for item in model.buffers()}
    )
    blank = _blank(model)
    for path, module in model.named_modules():
        prefix = f"{path}." if path else ""
        for kind, registered in (
            (PARAMETER, module._parameters),  # noqa: SLF001 - named_buffers leaves out those that share
            (BUFFER, module._buffers),  # noqa: SLF001 - named_buffers leaves out those that share
        ):
            for name, item in registered.items():
                if item is not None and not torch.nn.parameter.is_lazy(item):
                    found[prefix + name] = (
                        kind,
                        {"": StateSlot(item, _registered(registered, name))},
                        item,
                    )
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
        if kind.__name__ == "LightningModule" and kind.__module__.split(".")[0] in (
            "lightning",
            "pytorch_lightning",
        ):
            with contextlib.suppress(Exception):
                names |= set(vars(kind()))
    return names


def _cells(
    value: Any, setter: Callable[[Any], None], key: str, visited: Set[int], depth: int
) -> Iterator[Tuple[str, StateSlot]]:
    if id(value) in visited:
        return
    if isinstance(value, torch.Tensor):
        visited.add(id(value))
        yield key, StateSlot(value, lambda other: _put_tensor(value, other, setter))
    elif isinstance(value, NUMBERS) or type(value).__module__ == "numpy":
        yield key, StateSlot(value, setter)
    elif isinstance(value, torch.Generator):
        yield (
            key,
            StateSlot(
                bytes(value.get_state().tolist()),
                lambda state: value.set_state(torch.tensor(list(state), dtype=torch.uint8)),
            ),
        )
    elif isinstance(value, random.Random):
        yield key, StateSlot(value.getstate(), value.setstate)
    elif depth:
        visited.add(id(value))
        for name, item, put_it in _parts(value):
            yield from _cells(item, put_it, f"{key}.{name}" if key else name, visited, depth - 1)


def _parts(value: Any) -> Iterator[Tuple[str, Any, Callable[[Any], None]]]:
    if isinstance(value, dict):
        for name, item in list(value.items()):
            yield str(name), item, _item(value, name)
    elif isinstance(value, (list, deque)):
        for place, item in enumerate(list(value)):
            yield str(place), item, _item(value, place)
    elif isinstance(value, tuple):
        for place, item in enumerate(value):
            yield str(place), item, _fixed
    elif isinstance(value, torch.nn.Module):
        yield from _parts_of_module(value)
    elif (
        hasattr(value, "__dict__")
        and not isinstance(value, type)
        and not callable(value)
        and type(value).__module__.split(".")[0] not in OTHERS
    ):
        for name, item in list(vars(value).items()):
            yield name, item, _item(vars(value), name)


def _parts_of_module(module: Any) -> Iterator[Tuple[str, Any, Callable[[Any], None]]]:
    """One in a plain container: the model does not know it."""
    for registered in (module._parameters, module._buffers):  # noqa: SLF001
        for name, item in registered.items():
            if item is not None:
                yield name, item, _registered(registered, name)
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
            holder[name] = (
                torch.nn.Parameter(value.clone())
                if isinstance(live, torch.nn.Parameter)
                else value.clone()
            )

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
        return {key: _rebuilt(item) for key, item in value.items()}
    if isinstance(value, deque):
        return deque((_rebuilt(item) for item in value), value.maxlen)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_rebuilt(item) for item in value)
    if isinstance(value, (torch.Tensor, *NUMBERS)) or type(value).__module__ == "numpy":
        return _copied(value)
    return None
