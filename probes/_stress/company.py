"""A row in company and alone: outputs must not differ, and a batch's loss must be made of its rows' losses. Positions up to the longest declared."""

from __future__ import annotations

import functools
import math
from typing import Any, Dict, List, Optional, Tuple

import torch

from _stress.batches import Batch
from _stress.look import Look, gap
from _stress.pinning import Seen, own_fault, recorded
from _stress.sizes import Size, resizable, written
from _stress.subject import Ran, Subject

COUNT = 3
RELATIVE = ("rel", "dist", "bucket")  # tables of distances, not of places


def small(subject: Subject, went: List[Size], rows: int = COUNT) -> Optional[Size]:
    """A cheap size that went through, with `rows` rows and more than one position."""
    lengths = sorted(length for _, length in went if length is not None and length > 1)
    if subject.own_length is None:
        return rows, None
    if not resizable(subject):
        return rows, subject.own_length
    return (rows, next((one for one in lengths if one >= 7), lengths[-1])) if lengths else None


def row_of(big: Any, alone: Any, row: int, rows: int) -> Optional[Any]:
    """Return the part of `big` that is row `row` of `rows`, to be compared with the tensor of that row alone; None where no axis tells.

    An axis may hold each row several times (heads, flattened positions).
    """
    if big.dim() != alone.dim():
        return None
    axes = [axis for axis in range(big.dim()) if big.shape[axis] != alone.shape[axis]]
    if not axes:
        return big
    if len(axes) > 1 or alone.shape[axes[0]] == 0 or big.shape[axes[0]] != rows * alone.shape[axes[0]]:
        return None
    width = alone.shape[axes[0]]
    return big.narrow(axes[0], row * width, width)


def rows(subject: Subject, look: Look, went: List[Size]) -> str:
    """Compare a row alone with the same row among others."""
    size = small(subject, went)
    if subject.traits.noisy:
        look.note("Two runs in eval() differ, so that rows alone and in company were not compared.")
        return ""
    if size is None:
        return ""
    model = subject.comparing(subject.asked.seed)
    batch = subject.batch(size[0], size[1], seed=11, model=model)
    together, calls = _recorded(subject, model, batch)
    apart, name, row, fault, compared = 0.0, "", 0, "", 0
    for place in range(batch.rows):
        ran, mine = _recorded(subject, model, batch.take([place]))
        aligned = functools.partial(row_of, row=place, rows=batch.rows)
        parts = {key: aligned(together.outputs[key], one) for key, one in ran.outputs.items() if key in together.outputs and one.dim() > 0}
        far = max([(gap(part, ran.outputs[key]), key) for key, part in parts.items() if part is not None], default=None)
        compared += far is not None
        if far is not None and far[0] <= max(apart, subject.tolerance):
            apart, name = max((apart, name), far)
            continue
        found = own_fault(calls, mine, aligned, subject.tolerance)
        if far is not None:
            apart, name, row, fault = far[0], far[1], place, (found[0] or type(model).__name__) if found else ""
        elif found and found[0] and found[1] > apart:  # the model gives its loss alone
            apart, name, row, fault = found[1], "", place, found[0]
    module = fault
    if apart > subject.tolerance and _declares_capacity(model, "" if fault == type(model).__name__ else fault):
        look.note(f"A row's outputs depend on the rows beside it through {module}, which declares a capacity that all tokens share.")
        return "rows share a capacity"
    says = f"Row {row} of {batch.rows} differs by {apart:.2g} of the largest value from the same row alone{f' in {name}' if name else ''}"
    says += f"; {module} is given equal inputs and gives different outputs." if module else "."
    look.held("shape.rows_mixed", apart, subject.tolerance, "of the largest value", says, what="module", where=module, output=name, row=row)
    return "rows alone as in company" if compared else ""


def _recorded(subject: Subject, model: Any, batch: Batch) -> Tuple[Ran, List[Seen]]:
    with recorded(model) as calls:
        ran = subject.run(model, batch, seed=3)
    return ran, calls


def _declares_capacity(model: Any, fault: str) -> bool:
    """Do the module, those around it or those within say that tokens compete for places (experts with a capacity)?"""
    for path, module in model.named_modules():
        if path == fault or fault.startswith(f"{path}.") or path.startswith(f"{fault}."):
            names = [*vars(module), *(getattr(getattr(module, "config", None), "__dict__", {}) if path else ())]
            if any("capacity" in name.lower() for name in names):
                return True
    return False


def losses(subject: Subject, look: Look, went: List[Size]) -> str:
    """Hold the loss of a batch against its rows': each row must count, and a batch of one row twice must not shrink it."""
    size = small(subject, went)
    if subject.traits.noisy or not subject.traits.own_loss or size is None or subject.traits.couples_rows:
        return ""
    model = subject.comparing(subject.asked.seed)
    batch = subject.batch(size[0], size[1], seed=13, model=model)

    def loss(rows: List[int]) -> float:
        return float(subject.run(model, batch.take(rows), seed=3).loss)

    alone = [loss([row]) for row in range(batch.rows)]
    whole, tolerance = loss(list(range(batch.rows))), 100 * subject.tolerance
    if not all(math.isfinite(one) for one in (*alone, whole)):
        return ""
    _silent_rows(look, batch, loss, whole)
    _silent_positions(subject, look, model, went)
    largest = max(abs(one) for one in alone)
    mean, total = sum(alone) / len(alone), sum(alone)
    if min(abs(whole - mean), abs(whole - total)) <= tolerance * max(largest, 1e-9):
        return "the loss is its rows'"
    twice = [loss([0] * count) / alone[0] for count in (2, 4)] if abs(alone[0]) > 1e-6 * largest else [0.0, 0.0]
    if abs(twice[0] - 0.5) < 1e-4 and abs(twice[1] - 0.25) < 1e-4:
        says = f"The loss is divided by the number of rows once too often: one row has {alone[0]:.4g}, the same row four times {twice[1] * alone[0]:.4g}."
        look.held("shape.loss", 0.75, tolerance, "of the loss", says, what="loss", where="4x" + (str(size[1]) if size[1] else "1"))
    else:
        look.note(f"The loss of {batch.rows} rows ({whole:.4g}) is neither the mean ({mean:.4g}) nor the sum of theirs: it couples rows, or weighs them.")
    return ""


def _silent_rows(look: Look, batch: Batch, loss: Any, whole: float) -> None:
    """A row that may be another one without the loss noticing is left out of it."""
    every = list(range(batch.rows))
    silent, differing = [], []
    for row in every:
        other = (row + 1) % batch.rows
        if all(torch.equal(one, two) for one, two in zip(batch.take([row]).leaves().values(), batch.take([other]).leaves().values())):
            continue
        differing.append(row)
        changed = loss([other if one == row else one for one in every])
        if abs(changed - whole) <= 1e-12 * max(abs(whole), 1e-12):
            silent.append(row)
    if silent and len(silent) < len(differing):
        says = f"Row {silent[0]} of {batch.rows} has no influence on the loss: another row in its place leaves it at {whole:.6g}."
        look.held("shape.loss", float(len(silent)), 0, "rows", says, what="loss", where=f"row {silent[0]}", rows=str(silent))


def _silent_positions(subject: Subject, look: Look, model: Any, went: List[Size]) -> None:
    """The last label counts in a short batch: it must in the longest too, or the loss leaves out what comes behind some position."""
    last: Dict[str, bool] = {}
    found: Dict[Tuple[str, Size], bool] = {}
    for size in _each_length(went):
        batch = subject.batch(size[0], size[1], seed=13, model=model)
        if any("mask" in name and not bool(one.all()) for name, one in batch.leaves().items()):
            return  # what is padded may be left out
        for name in (name for name in batch.leaves() if "label" in name or "target" in name):
            heard = _hears(subject, model, batch, name, (size[1] or 1) - 1)
            if heard is not None:
                last.setdefault(name, heard)
                found[name, size] = heard
    for (name, size), heard in found.items():
        if last[name] and not heard:
            says = f"At {written(size)} the last of {name} has no influence on the loss, while it has in a short batch: the loss leaves positions out."
            look.held("shape.loss", 1, 0, "positions", says, what="loss", where=written(size), leaf=name)
            return


def _each_length(went: List[Size]) -> List[Size]:
    """One size of each length from seven on, the one of the fewest rows, the shortest first."""
    fewest = {length: (rows, length) for rows, length in sorted(went, key=lambda size: -size[0]) if length is not None and length >= 7}
    return [fewest[length] for length in sorted(fewest)]


def _hears(subject: Subject, model: Any, batch: Batch, name: str, position: int) -> Optional[bool]:
    """Does the loss change with the label at this position of the first row? None where the leaf has none, holds one value alone, or a loss is not finite."""
    labels, axes = batch.leaves()[name], batch.axes[name]
    if labels.dim() != 2 or axes.rows != 0 or axes.positions != (1,) or labels.is_floating_point():
        return None
    others = labels[0][(labels[0] != labels[0, position]) & (labels[0] >= 0)]
    if not others.numel() or int(labels[0, position]) < 0:
        return None
    changed = labels.clone()
    changed[0, position] = others[0]
    losses = [float(subject.run(model, one, seed=3).loss) for one in (batch, batch.replaced({**batch.leaves(), name: changed}))]
    if not all(math.isfinite(one) for one in losses):
        return None
    return abs(losses[0] - losses[1]) > 1e-12 * max(abs(losses[0]), 1e-12)


def positions(subject: Subject, look: Look, went: List[Size]) -> str:
    """At the longest length each row of the table of positions must be read: one that is read twice stands for one that is missing."""
    longest = subject.traits.max_length
    if longest is None or not {(1, longest), (2, longest)} & set(went):
        return ""
    model = subject.build(subject.asked.seed)
    tables = {
        name: one
        for name, one in model.named_modules()
        if isinstance(one, torch.nn.Embedding) and "pos" in name.lower() and not any(word in name.lower() for word in RELATIVE)
    }
    batch = subject.batch(1, longest, seed=5, model=model)
    read: Dict[str, Any] = {}

    def reader(name: str) -> Any:
        def note(_: Any, args: Any, __: Any) -> None:
            read.setdefault(name, args[0].detach().flatten() if args else None)

        return note

    hooks = [one.register_forward_hook(reader(name)) for name, one in tables.items() if one.num_embeddings == longest and one.padding_idx is None]
    try:
        subject.run(model, batch)
    finally:
        for hook in hooks:
            hook.remove()
    if any("mask" in name and not bool(one.all()) for name, one in batch.leaves().items()):
        return ""
    for name, places in read.items():
        if places is not None and places.numel() == longest:
            missing = longest - len(set(places.tolist()))
            says = f"At {longest} positions, as {subject.traits.max_length_name} declares, {missing} of the {longest} rows of {name} are never read: "
            says += "some positions share a row."
            look.held("shape.limit", float(missing), 0, "rows", says, what="attribute", where=subject.traits.max_length_name, module=name, declared=longest)
    return ""
