"""A row must not depend on the others, and a batch's loss must be made of its rows' losses."""

from __future__ import annotations

import functools
import math
from typing import Any, Dict, List, Optional, Tuple

import torch

from _model_stress.batches import Batch
from _model_stress.fault_location import RecordedCall, own_fault, recorded
from _model_stress.findings import Findings, gap
from _model_stress.sizes import Size, resizable, written
from _model_stress.tested_model import RunResult, TestedModel

COUNT = 3
RELATIVE = ("rel", "dist", "bucket")  # tables of distances, not of places


def small(tested: TestedModel, went: List[Size], rows: int = COUNT) -> Optional[Size]:
    """A cheap size that went through, with `rows` rows and more than one position."""
    lengths = sorted(length for _, length in went if length is not None and length > 1)
    if tested.own_length is None:
        return rows, None
    if not resizable(tested):
        return rows, tested.own_length
    return (rows, next((item for item in lengths if item >= 7), lengths[-1])) if lengths else None


def row_of(big: Any, alone: Any, row: int, rows: int) -> Optional[Any]:
    """The part of `big` that is row `row` of `rows`, comparable with `alone`; None without such an
    axis. An axis may hold each row several times (heads, flattened positions).
    """
    if big.dim() != alone.dim():
        return None
    axes = [axis for axis in range(big.dim()) if big.shape[axis] != alone.shape[axis]]
    if not axes:
        return big
    if (
        len(axes) > 1
        or alone.shape[axes[0]] == 0
        or big.shape[axes[0]] != rows * alone.shape[axes[0]]
    ):
        return None
    width = alone.shape[axes[0]]
    return big.narrow(axes[0], row * width, width)


def rows(tested: TestedModel, findings: Findings, went: List[Size]) -> str:
    """Compare a row alone with the same row among others."""
    size = small(tested, went)
    if tested.traits.noisy:
        findings.note("Two runs in eval() differ, so rows were not compared alone and in a batch.")
        return ""
    if size is None:
        return ""
    model = tested.comparing(tested.request.seed)
    batch = tested.batch(size[0], size[1], seed=11, model=model)
    together, calls = _recorded(tested, model, batch)
    apart, name, row, fault, compared = 0.0, "", 0, "", 0
    for place in range(batch.rows):
        ran, mine = _recorded(tested, model, batch.take([place]))
        aligned = functools.partial(row_of, row=place, rows=batch.rows)
        parts = {
            key: aligned(together.outputs[key], item)
            for key, item in ran.outputs.items()
            if key in together.outputs and item.dim() > 0
        }
        worst = max(
            [(gap(part, ran.outputs[key]), key) for key, part in parts.items() if part is not None],
            default=None,
        )
        compared += worst is not None
        if worst is not None and worst[0] <= max(apart, tested.tolerance):
            apart, name = max((apart, name), worst)
            continue
        found = own_fault(calls, mine, aligned, tested.tolerance)
        if worst is not None:
            apart = worst[0]
            name = worst[1]
            row = place
            fault = (found[0] or type(model).__name__) if found else ""
        elif found and found[0] and found[1] > apart:  # the model gives its loss alone
            apart, name, row, fault = found[1], "", place, found[0]
    module = fault
    if apart > tested.tolerance and _declares_capacity(
        model, "" if fault == type(model).__name__ else fault
    ):
        findings.note(
            f"A row's outputs depend on the rows beside it through {module}, which declares a"
            " capacity that all tokens share."
        )
        return "rows share a capacity"
    sentence = (
        f"Row {row} of {batch.rows} differs by {apart:.2g} of the largest value from the same row"
        f" alone{f' in {name}' if name else ''}"
    )
    sentence += f"; {module} gets equal inputs and gives different outputs." if module else "."
    labels = {"what": "module", "where": module, "output": name, "row": row}
    findings.differs("shape.rows_mixed", apart, sentence, tolerance=tested.tolerance, **labels)
    return "rows alone as in company" if compared else ""


def _recorded(
    tested: TestedModel, model: Any, batch: Batch
) -> Tuple[RunResult, List[RecordedCall]]:
    with recorded(model) as calls:
        ran = tested.run(model, batch, seed=3)
    return ran, calls


def _declares_capacity(model: Any, fault: str) -> bool:
    """Whether the module or one around or in it limits tokens (experts with a capacity)."""
    for path, module in model.named_modules():
        if path == fault or fault.startswith(f"{path}.") or path.startswith(f"{fault}."):
            names = [
                *vars(module),
                *(getattr(getattr(module, "config", None), "__dict__", {}) if path else ()),
            ]
            if any("capacity" in name.lower() for name in names):
                return True
    return False


def losses(tested: TestedModel, findings: Findings, went: List[Size]) -> str:
    """Compare a batch's loss with its rows': each row must count, duplicates must not shrink it."""
    size = small(tested, went)
    if (
        tested.traits.noisy
        or not tested.traits.own_loss
        or size is None
        or tested.traits.couples_rows
    ):
        return ""
    model = tested.comparing(tested.request.seed)
    batch = tested.batch(size[0], size[1], seed=13, model=model)

    def loss(rows: List[int]) -> float:
        return float(tested.run(model, batch.take(rows), seed=3).loss)

    alone = [loss([row]) for row in range(batch.rows)]
    whole, tolerance = loss(list(range(batch.rows))), 100 * tested.tolerance
    if not all(math.isfinite(item) for item in (*alone, whole)):
        return ""
    _silent_rows(findings, batch, loss, whole)
    _silent_positions(tested, findings, model, went)
    largest = max(abs(item) for item in alone)
    mean, total = sum(alone) / len(alone), sum(alone)
    if min(abs(whole - mean), abs(whole - total)) <= tolerance * max(largest, 1e-9):
        return "the loss is made of its rows' losses"
    twice = (
        [loss([0] * count) / alone[0] for count in (2, 4)]
        if abs(alone[0]) > 1e-6 * largest
        else [0.0, 0.0]
    )
    if abs(twice[0] - 0.5) < 1e-4 and abs(twice[1] - 0.25) < 1e-4:
        sentence = (
            f"The loss is divided by the number of rows once too often: one row has {alone[0]:.4g},"
            f" the same row four times {twice[1] * alone[0]:.4g}."
        )
        findings.held(
            "shape.loss",
            0.75,
            tolerance,
            "of the loss",
            sentence,
            what="loss",
            where="4x" + (str(size[1]) if size[1] else "1"),
        )
    else:
        findings.note(
            f"The loss of {batch.rows} rows ({whole:.4g}) is neither the mean ({mean:.4g}) nor the"
            " sum of theirs: it couples or weighs rows."
        )
    return ""


def _silent_rows(findings: Findings, batch: Batch, loss: Any, whole: float) -> None:
    """A row that may be another one without the loss noticing is left out of it."""
    every = list(range(batch.rows))
    silent, differing = [], []
    for row in every:
        other = (row + 1) % batch.rows
        if all(
            torch.equal(item, two)
            for item, two in zip(
                batch.take([row]).leaves().values(), batch.take([other]).leaves().values()
            )
        ):
            continue
        differing.append(row)
        changed = loss([other if item == row else item for item in every])
        if abs(changed - whole) <= 1e-12 * max(abs(whole), 1e-12):
            silent.append(row)
    if silent and len(silent) < len(differing):
        sentence = (
            f"Row {silent[0]} of {batch.rows} does not affect the loss: another row in its place"
            f" leaves it at {whole:.6g}."
        )
        findings.counted(
            "shape.loss",
            len(silent),
            "rows",
            sentence,
            what="loss",
            where=f"row {silent[0]}",
            rows=str(silent),
        )


def _silent_positions(
    tested: TestedModel, findings: Findings, model: Any, went: List[Size]
) -> None:
    """Find losses that use the last label of a short batch but not that of the longest."""
    last: Dict[str, bool] = {}
    found: Dict[Tuple[str, Size], bool] = {}
    for size in _each_length(went):
        batch = tested.batch(size[0], size[1], seed=13, model=model)
        if any("mask" in name and not bool(item.all()) for name, item in batch.leaves().items()):
            return  # what is padded may be left out
        for name in (name for name in batch.leaves() if "label" in name or "target" in name):
            heard = _hears(tested, model, batch, name, (size[1] or 1) - 1)
            if heard is not None:
                last.setdefault(name, heard)
                found[name, size] = heard
    for (name, size), heard in found.items():
        if last[name] and not heard:
            sentence = (
                f"At {written(size)} the last of {name} does not affect the loss, unlike in a short"
                " batch: the loss omits positions."
            )
            findings.counted(
                "shape.loss", 1, "positions", sentence, what="loss", where=written(size), leaf=name
            )
            return


def _each_length(went: List[Size]) -> List[Size]:
    """One size of each length from seven on, the one of the fewest rows, the shortest first."""
    fewest = {
        length: (rows, length)
        for rows, length in sorted(went, key=lambda size: -size[0])
        if length is not None and length >= 7
    }
    return [fewest[length] for length in sorted(fewest)]


def _hears(
    tested: TestedModel, model: Any, batch: Batch, name: str, position: int
) -> Optional[bool]:
    """Does the loss change with the label at this position? None where that cannot be tried."""
    labels, axes = batch.leaves()[name], batch.axes[name]
    if labels.dim() != 2 or axes.rows != 0 or axes.positions != (1,) or labels.is_floating_point():
        return None
    others = labels[0][(labels[0] != labels[0, position]) & (labels[0] >= 0)]
    if not others.numel() or int(labels[0, position]) < 0:
        return None
    changed = labels.clone()
    changed[0, position] = others[0]
    losses = [
        float(tested.run(model, item, seed=3).loss)
        for item in (batch, batch.replaced({**batch.leaves(), name: changed}))
    ]
    if not all(math.isfinite(item) for item in losses):
        return None
    return abs(losses[0] - losses[1]) > 1e-12 * max(abs(losses[0]), 1e-12)


def positions(tested: TestedModel, findings: Findings, went: List[Size]) -> str:
    """Every row of the position table must be read at the longest length."""
    longest = tested.traits.max_length
    if longest is None or not {(1, longest), (2, longest)} & set(went):
        return ""
    model = tested.build(tested.request.seed)
    tables = {
        name: item
        for name, item in model.named_modules()
        if isinstance(item, torch.nn.Embedding)
        and "pos" in name.lower()
        and not any(part in name.lower() for part in RELATIVE)
    }
    batch = tested.batch(1, longest, seed=5, model=model)
    read: Dict[str, Any] = {}

    def reader(name: str) -> Any:
        def note(_: Any, args: Any, __: Any) -> None:
            read.setdefault(name, args[0].detach().flatten() if args else None)

        return note

    hooks = [
        item.register_forward_hook(reader(name))
        for name, item in tables.items()
        if item.num_embeddings == longest and item.padding_idx is None
    ]
    try:
        tested.run(model, batch)
    finally:
        for hook in hooks:
            hook.remove()
    if any("mask" in name and not bool(item.all()) for name, item in batch.leaves().items()):
        return ""
    for name, places in read.items():
        if places is not None and places.numel() == longest:
            missing = longest - len(set(places.tolist()))
            sentence = (
                f"At {longest} positions, as {tested.traits.max_length_name} declares, {missing}"
                f" of the {longest} rows of {name} are never read: "
            )
            sentence += "some positions share a row."
            findings.counted(
                "shape.limit",
                missing,
                "rows",
                sentence,
                what="attribute",
                where=tested.traits.max_length_name,
                module=name,
                declared=longest,
            )
    return ""
