"""A batch of the user's, and batches of other sizes made from it.

A batch is a tensor, or a dict, list or tuple of tensors and other things, nested. Its tensors are
its leaves, by dotted name (`input_ids`, `0`, `1.mask`). Each leaf has at most one axis that counts
rows, and any number that count positions (a 4-D mask has two).
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch

from _model_stress.findings import NotApplicableError


class Axes(NamedTuple):
    """The axes of one leaf: that of rows (None where it has none) and those of positions."""

    rows: Optional[int]
    positions: Tuple[int, ...]


class Batch:
    """`data` goes into the model; `rows` and `length` (None without positions) are its sizes.
    `packed`: a leaf in which rows take several places each, one after another (the nodes of graphs,
    the items of bags); such a batch cannot be taken apart.
    """

    def __init__(self, data: Any, axes: Dict[str, Axes], packed: str = "") -> None:
        self.data, self.axes, self.packed = data, axes, packed
        leaves = self.leaves()
        self.rows: int = next(
            (leaves[name].shape[item.rows] for name, item in axes.items() if item.rows is not None),
            1,
        )
        self.length: Optional[int] = next(
            (
                leaves[name].shape[item.positions[0]]
                for name, item in axes.items()
                if item.positions
            ),
            None,
        )

    def leaves(self) -> Dict[str, Any]:
        """Return its tensors by name."""
        return leaves_of(self.data)

    def changed(self, change: Callable[[str, Any], Any]) -> Batch:
        """Return a batch in which each leaf is `change(name, tensor)`."""
        return Batch(rebuilt(self.data, change), self.axes, self.packed)

    def copied(self) -> Batch:
        """Return a copy in the same memory layout, into which a model may write."""
        return self.changed(lambda _, tensor: _copy(tensor))

    def replaced(self, leaves: Dict[str, Any]) -> Batch:
        """A batch with these tensors; a name that a dict batch lacks is added at its top."""
        data = self.data
        if isinstance(data, dict):
            data = {
                **data,
                **{
                    name: tensor
                    for name, tensor in leaves.items()
                    if "." not in name and name not in data
                },
            }
        axes = {
            **self.axes,
            **{
                name: axes_of(tensor, self.rows, self.length)
                for name, tensor in leaves.items()
                if name not in self.axes
            },
        }
        return Batch(rebuilt(data, leaves.get), axes, self.packed)

    def take(self, rows: List[int]) -> Batch:
        """Return the batch of these rows. Raises NotApplicableError where rows are packed."""
        if self.packed and rows != list(range(self.rows)):
            raise NotApplicableError(
                f"the rows of a batch cannot be told apart: {self.packed} holds several places of"
                " each"
            )
        return self.changed(lambda name, tensor: _picked(tensor, self.axes[name].rows, rows))

    def cut(self, length: int) -> Batch:
        """Return the batch of the first `length` positions."""
        return self.at(list(range(length)))

    def at(self, positions: List[int]) -> Batch:
        """Return the batch of these positions, in this order; one may come several times."""

        def picked(name: str, tensor: Any) -> Any:
            for axis in self.axes[name].positions:
                tensor = _picked(tensor, axis, positions)
            return tensor

        return self.changed(picked)

    def resized(self, rows: int, length: Optional[int], seed: int = 0) -> Batch:
        """A batch of `rows` x `length`, drawn by `seed` from the rows and positions of this one.
        Leaves named like `position_ids` count on; masks keep their values by position.
        """
        draw = torch.Generator().manual_seed(seed)
        pick = (
            torch.randint(self.rows, (rows,), generator=draw).tolist()
            if rows > self.rows
            else list(range(rows))
        )
        grown = self.take(pick)
        if length is None or self.length is None:
            return grown
        places = (
            list(range(length))
            if length <= self.length
            else torch.randint(self.length, (length,), generator=draw).tolist()
        )
        out = grown.at(places)
        # one for all leaves of a row: labels stay with what they label
        orders = [torch.randperm(length, generator=draw) for _ in range(rows)]
        own: int = self.length

        def mixed(name: str, tensor: Any) -> Any:
            axes = self.axes[name]
            if (
                "position" in name
                and not tensor.is_floating_point()
                and len(axes.positions) == 1
                and not tensor.is_complex()
            ):
                shape = [1] * tensor.dim()
                shape[axes.positions[0]] = length
                return (
                    torch.arange(length, dtype=tensor.dtype, device=tensor.device)
                    .reshape(shape)
                    .expand_as(tensor)
                    .clone()
                )
            if (
                tensor.dtype == torch.bool
                or "mask" in name
                or len(axes.positions) != 1
                or axes.rows is None
                or (rows <= self.rows and length <= own)
            ):
                return tensor
            # repeated rows must not be alike, or mixing rows up would not show
            for row, order in enumerate(orders):
                part = tensor.select(axes.rows, row)
                axis = axes.positions[0] - (1 if axes.positions[0] > axes.rows else 0)
                part.copy_(part.index_select(axis, order.to(tensor.device)).clone())
            return tensor

        return out.changed(lambda name, tensor: mixed(name, tensor.clone()))

    def to(self, *, device: Optional[str] = None, dtype: Any = None) -> Batch:
        """Return it on a device, its floating-point leaves as `dtype`."""

        def moved(_: str, tensor: Any) -> Any:
            return tensor.to(
                device=device or tensor.device,
                dtype=dtype if dtype is not None and tensor.is_floating_point() else tensor.dtype,
            )

        return self.changed(moved)


def _copy(tensor: Any) -> Any:
    """A copy with the strides of the tensor, as far as its elements do not overlap."""
    spread = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    if (
        tensor.numel() == 0
        or tensor.is_contiguous()
        or not tensor.numel() <= spread <= 4 * tensor.numel()
    ):
        return tensor.clone()
    whole = torch.empty(spread, dtype=tensor.dtype, device=tensor.device)
    return whole.as_strided(tensor.shape, tensor.stride()).copy_(tensor)


def leaves_of(data: Any, name: str = "") -> Dict[str, Any]:
    """The tensors in nested dicts, lists and tuples, by dotted name; a lone tensor has ""."""
    if isinstance(data, torch.Tensor):
        return {name: data}
    found: Dict[str, Any] = {}
    items = (
        data.items()
        if hasattr(data, "items")
        else enumerate(data)
        if isinstance(data, (list, tuple))
        else ()
    )
    for key, value in items:
        found.update(leaves_of(value, f"{name}.{key}" if name else str(key)))
    return found


def rebuilt(data: Any, change: Callable[[str, Any], Any], name: str = "") -> Any:
    """Return nested dicts, lists and tuples with each tensor as `change(name, tensor)`."""
    if isinstance(data, torch.Tensor):
        return change(name, data)
    if hasattr(data, "items"):
        return {
            key: rebuilt(value, change, f"{name}.{key}" if name else str(key))
            for key, value in data.items()
        }
    if isinstance(data, (list, tuple)):
        parts = [
            rebuilt(value, change, f"{name}.{place}" if name else str(place))
            for place, value in enumerate(data)
        ]
        return type(data)(*parts) if hasattr(data, "_fields") else type(data)(parts)
    return data


def _picked(tensor: Any, axis: Optional[int], places: List[int]) -> Any:
    if axis is None:
        return tensor
    return tensor.index_select(axis, torch.tensor(places, device=tensor.device))


def axes_of(tensor: Any, rows: int, length: Optional[int]) -> Axes:
    """Guess the axes of one tensor: the first counts rows if it has that size, later ones of the
    positions' size count positions. A floating-point tensor that is no mask has at most one of
    those; the next counts features.
    """
    first = (
        0
        if tensor.dim() > 0
        and tensor.shape[0] in (rows, 1)
        and (tensor.shape[0] == rows or tensor.dim() > 1)
        else None
    )
    if first is not None and tensor.shape[0] != rows:
        first = None  # one row for all
    same = [
        axis
        for axis in range(tensor.dim())
        if axis != first and length is not None and tensor.shape[axis] == length
    ]
    if tensor.is_floating_point() and tensor.dim() == 3 and first == 0:
        same = [axis for axis in same if axis == 1]
    return Axes(first, tuple(same))


def differing(data: Any, other: Any) -> Dict[str, Tuple[int, ...]]:
    """The axes of each leaf of `data` whose size is another in `other`."""
    leaves, others = leaves_of(data), leaves_of(other)
    return {
        name: tuple(
            axis for axis in range(item.dim()) if item.shape[axis] != others[name].shape[axis]
        )
        if name in others and others[name].dim() == item.dim()
        else ()
        for name, item in leaves.items()
    }


def batch_between(data: Any, rows: int, more_rows: Any, longer: Any = None) -> Optional[Batch]:
    """The batch that `data` of `rows` rows is, from the same with one more row and with one more
    position; without `longer` positions are guessed. None where no axis counts rows.
    """
    leaves, grown = leaves_of(data), differing(data, more_rows)
    counts = {
        name: next((axis for axis in axes if leaves[name].shape[axis] == rows), None)
        for name, axes in grown.items()
    }
    if all(axis is None for axis in counts.values()):
        return None
    packed = next((name for name in leaves if grown[name] and counts[name] is None), "")
    if longer is not None:
        positions = differing(data, longer)
    elif packed:
        positions = dict.fromkeys(leaves, ())
    else:
        length = _length_of({name: item for name, item in leaves.items() if counts[name] == 0})
        positions = {
            name: _guessed(name, item, rows, length).positions if counts[name] == 0 else ()
            for name, item in leaves.items()
        }
    return Batch(data, {name: Axes(counts[name], positions[name]) for name in leaves}, packed)


def batch_of(data: Any) -> Batch:
    """The batch that `data` is, with axes guessed from the sizes that most tensors share."""
    leaves = leaves_of(data)
    sizes = [item.shape[0] for item in leaves.values() if item.dim() > 0]
    count = max(set(sizes), key=sizes.count, default=1)
    length = _length_of(
        {name: item for name, item in leaves.items() if item.dim() > 0 and item.shape[0] == count}
    )
    return Batch(data, {name: _guessed(name, item, count, length) for name, item in leaves.items()})


def _guessed(name: str, tensor: Any, rows: int, length: Optional[int]) -> Axes:
    """The axes of a leaf; a picture has no positions, whatever its width."""
    found = axes_of(tensor, rows, length)
    return Axes(found.rows, ()) if _is_picture(tensor) and "mask" not in name else found


def _length_of(leaves: Dict[str, Any]) -> Optional[int]:
    """The number of positions that most leaves share, their rows first. A map of the size of the
    batch's pictures counts pixels.
    """
    pictures = {tuple(item.shape[-2:]) for item in leaves.values() if _is_picture(item)}
    seconds = [
        item.shape[1]
        for item in leaves.values()
        if item.dim() >= 2
        and (not item.is_floating_point() or item.dim() == 3)
        and not (item.dim() > 2 and tuple(item.shape[-2:]) in pictures)
    ]
    return max(set(seconds), key=seconds.count, default=None)


def _is_picture(tensor: Any) -> bool:
    """Whether it is a picture of more than one line, or a clip of such."""
    return bool(tensor.is_floating_point() and tensor.dim() > 3 and tensor.shape[-2] > 1)
