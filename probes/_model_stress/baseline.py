"""The first look at the model, in a child: does it run, and what must the suites know of it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import Any, Dict, List, Optional, Set, Tuple

import torch

from _model_stress.batches import Batch
from _model_stress.fan_in import fan_ins
from _model_stress.fault_location import own_fault, recorded, refused
from _model_stress.findings import Findings, gap
from _model_stress.sizes import TOO_SHORT, written
from _model_stress.tested_model import (
    RunResult,
    TestedModel,
    Traits,
    max_length_of,
    threads_for,
)
from _shared import named_object
from _shared.child_program import summary_of
from _shared.memory import memory_limits

# of the weights that the largest suite holds at a time: two models in float64, gradients, two
# moments of Adam
COPIES = 12
LONGER = (64, 256, 1024, 4096, 16384)  # positions, of raw audio for one


def first_look(tested: TestedModel, findings: Findings) -> Dict[str, Any]:
    """Run the model as it is and in a few other ways; return `kind`, `traits` and `imported`, the
    installed modules that only building and running imported. Raises what the model raises, and
    NamedObjectError.
    """
    known = set(sys.modules)
    findings.step("build")
    model = tested.build(tested.request.seed)
    threads_for(sum(item.numel() for item in model.parameters()))
    size = sum(item.numel() * item.element_size() for item in model.parameters())
    free = memory_limits().free if tested.device == "cpu" else torch.cuda.mem_get_info()[0]
    if size * COPIES > free:
        raise named_object.NamedObjectError(
            f"The weights take {size / 2**30:.1f} GiB, the suites {COPIES} times that, and"
            f" {free / 2**30:.1f} GiB are free; name a smaller configuration."
        )
    findings.step("sample")
    batch = tested.batch(2, model=model)
    findings.step("forward")
    began = time.perf_counter()
    try:
        ran = tested.run(model, batch)
    except Exception as error:  # whatever the user's model raises
        _other_rows(tested, findings, model, batch, error)
        longer = _longer(tested, model, error)
        if longer is None:
            raise
        batch, ran = longer
    took_s = time.perf_counter() - began
    findings.step("backward")
    loss = tested.run(model, batch, grad=True).loss
    if loss.requires_grad:
        loss.backward()
    findings.step("forward again")
    began = time.perf_counter()
    tested.run(model, batch)
    # the first pass allocates, and imports what it needs
    took_s = min(took_s, time.perf_counter() - began)
    _written_into(tested, findings, model, batch)
    findings.step("fan-ins")
    # what the model forbids to be watched has the fan-ins of its shapes
    with contextlib.suppress(Exception):
        tested.traits = tested.traits._replace(
            fan_ins=fan_ins(model, lambda: tested.run(model, batch, grad=True))
        )
    longest, name = max_length_of(model)
    noisy = _is_noisy(tested, findings)
    traits = Traits(
        doubles=_doubles(tested, findings, ran),
        noisy=noisy,
        max_length=longest,
        max_length_name=name,
        own_loss=ran.own_loss,
        parameters=sum(item.numel() for item in model.parameters()),
        forward_s=took_s,
        fan_ins=tested.traits.fan_ins,
        usual_length=tested.traits.usual_length,
    )
    tested.traits = traits
    findings.step("other sizes")
    resizes = _resizes(tested)
    couples, loss_couples = (False, False) if noisy else _couples(tested)
    traits = traits._replace(resizes=resizes, couples_rows=couples, loss_couples=loss_couples)
    return {
        "kind": tested.kind,
        "traits": traits._asdict(),
        "imported": _installed(set(sys.modules) - known),
    }


def _other_rows(
    tested: TestedModel, findings: Findings, model: Any, batch: Batch, error: Exception
) -> None:
    """Tell of a model that runs with the sample's own rows and with no other; return where it does
    not run with them either.
    """
    own = tested.own_batch(model)
    if own is None or own.rows == batch.rows or refused(error):
        return
    try:
        tested.run(model, own)
    except Exception:  # it does not run at all, which `error` tells
        return
    sentence = (
        f"A batch of {written((batch.rows, batch.length))} fails forward ({summary_of(error)});"
        f" {written((own.rows, own.length))}, as the sample gives it, works."
    )
    findings.raised(
        "shape.raises",
        error,
        sentence,
        what="size",
        where=written((batch.rows, batch.length)),
        rows=batch.rows,
        length=batch.length or 0,
    )
    findings.skip(
        f"the model takes {own.rows} rows only, and every suite compares batches of other sizes"
    )


def _longer(tested: TestedModel, model: Any, error: Exception) -> Optional[Tuple[Batch, RunResult]]:
    """A longer batch that goes through, where the sample leaves the length to us and ours is too
    short for the model's convolutions; None without one.
    """
    if not tested.sized or not any(text in str(error).lower() for text in TOO_SHORT):
        return None
    for length in LONGER:
        tested.traits = tested.traits._replace(usual_length=length)
        batch = tested.batch(2, model=model)
        with contextlib.suppress(Exception):  # the first error is the one to tell
            return batch, tested.run(model, batch)
    return None


def _written_into(tested: TestedModel, findings: Findings, model: Any, batch: Batch) -> None:
    """Does forward change the batch that it is given? A second pass on it then sees other values:
    gradient accumulation, a second model and the loss's own copy of the input.
    """
    findings.step("the batch after a pass")
    given = batch.changed(lambda _, item: item.clone())
    held = batch.changed(lambda _, item: item.clone())
    with torch.no_grad():
        tested.call(model, given.data)
    after = given.leaves()
    for name, item in held.leaves().items():
        worst = gap(after[name], item)
        leaf = name or "its input"
        sentence = (
            f"forward() writes into the batch: afterwards {leaf} differs by {worst:.2g} of its"
            " largest value, and a second pass on the same batch gives something else."
        )
        findings.differs("evaluation.input", worst, sentence, what="leaf", where=leaf)


def _installed(names: Set[str]) -> List[str]:
    """Those of packages that were installed: the user's own are left as the import found them."""
    files = {name: str(getattr(sys.modules.get(name), "__file__", None) or "") for name in names}
    return sorted(
        name
        for name, file in files.items()
        if f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file
    )


def _is_noisy(tested: TestedModel, findings: Findings) -> bool:
    """Compare two passes in eval() with other seeds; name the first module that differs."""
    findings.step("eval twice")
    model = tested.build(tested.request.seed, lively=True)
    batch, runs = tested.batch(2, model=model), []
    for seed in (1, 2):
        with recorded(model) as calls:
            ran = tested.run(model, batch, seed=seed)
        runs.append((calls, ran))
    (item, first), (other, second) = runs
    worst = first.gap(second)
    where = ""
    if worst > 1e-6:
        fault = own_fault(item, other, lambda mine, _theirs: mine, 1e-6, scalars=True)
        where = (fault[0] if fault else "") or type(model).__name__
    sentence = (
        f"Two runs in eval() on one batch differ by {worst:.2g} of the largest output: {where}"
        " gives different outputs for equal inputs."
    )
    return not findings.differs(
        "evaluation.difference", worst, sentence, tolerance=1e-6, what="module", where=where
    )


def _doubles(tested: TestedModel, findings: Findings, single: RunResult) -> bool:
    findings.step("float64")
    try:
        model = tested.build(tested.request.seed, dtype=torch.float64)
        double = tested.run(model, tested.batch(2, model=model))
    except Exception:  # any error of the user's code means that it does not calculate in float64
        return False
    outputs = list(double.outputs.values()) or [double.loss]
    return all(item.dtype == torch.float64 for item in outputs) and (
        not bool(torch.isfinite(single.loss)) or bool(torch.isfinite(double.loss))
    )


def _resizes(tested: TestedModel) -> bool:
    length = tested.own_length
    if length is None:
        return False
    model = tested.comparing()
    try:
        tested.run(model, tested.batch(2, max(2, length // 2), model=model))
    except Exception:  # why another length does not go through is asked by the shapes
        return False
    return True


def _couples(tested: TestedModel) -> Tuple[bool, bool]:
    """Whether a row depends on other rows, and whether a batch's loss is not its rows' mean."""
    model = tested.comparing()
    batch = tested.batch(3, seed=3, model=model)
    together = tested.run(model, batch)
    alone: List[RunResult] = []
    try:
        alone = [tested.run(model, batch.take([row])) for row in range(batch.rows)]
    except Exception:  # one row alone may be refused, by a norm over rows for one
        return False, False
    outputs: Dict[str, Any] = {
        name: item
        for name, item in together.outputs.items()
        if item.dim() > 0 and item.shape[0] == batch.rows
    }
    couples = any(
        gap(torch.cat([item.outputs[name] for item in alone]), outputs[name]) > tested.tolerance
        for name in outputs
        if all(name in item.outputs for item in alone)
    )
    loss = torch.stack([item.loss.detach() for item in alone]).mean()
    return couples, not couples and gap(loss, together.loss.detach()) > tested.tolerance
