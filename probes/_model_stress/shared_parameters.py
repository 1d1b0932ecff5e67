"""A model without shared parameters must give the same loss; the copies' gradients must add up."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Tuple

import torch

from _model_stress.fault_location import opened
from _model_stress.findings import Findings, gap
from _model_stress.sizes import Size, written
from _model_stress.tested_model import TestedModel
from _shared.child_program import summary_of

TIE = "tie_word_embeddings"
FEW = 3


def unshared(model: Any) -> Tuple[Any, Dict[str, List[str]]]:
    """A copy in which nothing is shared, and the names of each parameter that was."""
    visited: Dict[int, str] = {}
    names: Dict[str, List[str]] = {}
    for name, item in model.named_parameters(remove_duplicate=False):
        first = visited.setdefault(id(item), name)
        names.setdefault(first, []).append(name)
    shared = {first: every for first, every in names.items() if len(every) > 1}
    other = copy.deepcopy(model)
    _part(other, set(), set())
    return other, shared


def _part(module: Any, modules: set[int], parameters: set[int]) -> None:
    for name, item in list(module._parameters.items()):  # noqa: SLF001 - the slots themselves
        if item is not None:
            if id(item) in parameters:
                module._parameters[name] = item = torch.nn.Parameter(  # noqa: PLW2901, SLF001
                    item.detach().clone(), requires_grad=item.requires_grad
                )
            parameters.add(id(item))
    for name, child in list(module._modules.items()):  # noqa: SLF001
        if child is not None:
            if id(child) in modules:
                module._modules[name] = child = copy.deepcopy(child)  # noqa: PLW2901, SLF001
            modules.add(id(child))
            _part(child, modules, parameters)


def sharing(tested: TestedModel, findings: Findings, went: List[Size]) -> str:
    """Compare losses and gradients without sharing; then flip the tying option."""
    if not went:
        return ""
    try:
        model = tested.comparing(tested.request.seed)
        other, shared = unshared(model)
    except Exception as error:  # what holds locks, files or views of itself
        findings.note(f"The model cannot be copied without sharing ({summary_of(error)}).")
        return ""
    message = []
    sizes = [size for size in went if size[1] is None or size[1] > 1][:FEW]
    hooked = [
        name for name, item in model.named_parameters() if getattr(item, "_backward_hooks", None)
    ]
    if shared and not tested.traits.noisy:
        if not hooked:
            _compared(tested, findings, model, other, shared, sizes)
        message.append(
            f"{len(shared)} shared parameter{'s' if len(shared) > 1 else ''} as"
            f" {'its' if len(shared) == 1 else 'their'} parts"
        )
    if tested.kind == "transformers" and isinstance(tested.options().get(TIE), bool):
        _turned(tested, findings, sizes)
    return ", ".join(message)


def _compared(
    tested: TestedModel,
    findings: Findings,
    model: Any,
    other: Any,
    shared: Dict[str, List[str]],
    sizes: List[Size],
) -> None:
    worst_loss: Tuple[float, str] = (0.0, "")
    worst: Tuple[float, str, str] = (0.0, "", "")
    for size in sizes:
        batch = tested.batch(size[0], size[1], seed=17, model=model)
        passes = []
        for item in (model, other):
            item.zero_grad()
            ran = tested.run(item, batch, seed=3, grad=True)
            ran.loss.backward()
            passes.append(ran)
        worst_loss = max(worst_loss, (gap(passes[1].loss, passes[0].loss), written(size)))
        mine = dict(model.named_parameters(remove_duplicate=False))
        theirs = dict(other.named_parameters(remove_duplicate=False))
        for first, names in shared.items():
            parts = [theirs[name].grad for name in names if theirs[name].grad is not None]
            whole = mine[first].grad
            if whole is None or not parts:
                continue
            total = sum(
                (item.to_dense() if item.is_sparse else item for item in parts[1:]),
                parts[0].to_dense() if parts[0].is_sparse else parts[0],
            )
            worst = max(
                worst,
                (gap(total, whole.to_dense() if whole.is_sparse else whole), first, written(size)),
            )
    first = worst[1] or next(iter(shared))
    others = ", ".join(shared[first][1:4])
    tolerance = tested.tolerance
    sentence = (
        f"With separate copies the loss differs by {worst_loss[0]:.2g} at {worst_loss[1]}, though"
        f" {first} ({others}) has equal values in all of them."
    )
    place = {"what": "parameter", "where": first, "size": worst_loss[1]}
    same = findings.held(
        "shape.sharing_loss", worst_loss[0], tolerance, "of the loss", sentence, **place
    )
    if same:
        sentence = (
            f"The gradient of {first}, shared with {others}, is not the sum of its copies'"
            f" gradients: it differs by {worst[0]:.2g} of the largest at {worst[2]}."
        )
        place["size"] = worst[2]
        findings.differs(
            "shape.sharing_gradient", worst[0], sentence, tolerance=10 * tolerance, **place
        )


def _turned(tested: TestedModel, findings: Findings, sizes: List[Size]) -> None:
    """The other value of the tying option must run too; its loss is that of another model."""
    turned = not tested.options()[TIE]
    where = f"{TIE}={turned}"
    findings.step(where)
    try:
        model = tested.build(tested.request.seed, options={TIE: turned})
    except Exception as error:  # a refusal, of whatever kind: the fuzz suite judges those
        findings.note(f"With {where} the model cannot be built ({summary_of(error)}).")
        return
    for size in sizes:
        batch = tested.batch(size[0], size[1], seed=17, model=model)
        with opened(model) as now:
            try:
                tested.run(model, batch, seed=3, grad=True).loss.backward()
            except Exception as error:  # whatever the user's model raises is what was looked for
                sentence = f"With {where} a batch of {written(size)} fails ({summary_of(error)})."
                labels = {"module": now.innermost(), "size": written(size)}
                findings.raised(
                    "shape.sharing_loss", error, sentence, what="option", where=where, **labels
                )
                return
