"""With and without shared parameters: a model in which each place has a copy of its own must give the same loss, and their gradients must add up."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Tuple

import torch

from _stress.look import Look, gap
from _stress.pinning import opened
from _stress.sizes import Size, written
from _stress.subject import Subject

TIE = "tie_word_embeddings"
FEW = 3


def unshared(model: Any) -> Tuple[Any, Dict[str, List[str]]]:
    """Return a copy in which no two places hold one parameter or one module, and the names of each that was shared, its first name first."""
    seen: Dict[int, str] = {}
    names: Dict[str, List[str]] = {}
    for name, one in model.named_parameters(remove_duplicate=False):
        first = seen.setdefault(id(one), name)
        names.setdefault(first, []).append(name)
    shared = {first: every for first, every in names.items() if len(every) > 1}
    other = copy.deepcopy(model)
    _part(other, set(), set())
    return other, shared


def _part(module: Any, modules: set[int], parameters: set[int]) -> None:
    for name, one in list(module._parameters.items()):  # noqa: SLF001 - the slots themselves
        if one is not None:
            if id(one) in parameters:
                module._parameters[name] = one = torch.nn.Parameter(one.detach().clone(), requires_grad=one.requires_grad)  # noqa: PLW2901, SLF001
            parameters.add(id(one))
    for name, child in list(module._modules.items()):  # noqa: SLF001
        if child is not None:
            if id(child) in modules:
                module._modules[name] = child = copy.deepcopy(child)  # noqa: PLW2901, SLF001
            modules.add(id(child))
            _part(child, modules, parameters)


def sharing(subject: Subject, look: Look, went: List[Size]) -> str:
    """Compare losses and gradients over the cheapest sizes with nothing shared; then the model with the tying option turned round."""
    if not went:
        return ""
    try:
        model = subject.comparing(subject.asked.seed)
        other, shared = unshared(model)
    except Exception as error:  # what holds locks, files or views of itself
        look.note(f"The model cannot be copied without sharing ({type(error).__name__}: {str(error)[:120]}).")
        return ""
    said = []
    sizes = [size for size in went if size[1] is None or size[1] > 1][:FEW]
    hooked = [name for name, one in model.named_parameters() if getattr(one, "_backward_hooks", None)]
    if shared and not subject.traits.noisy:
        if not hooked:
            _compared(subject, look, model, other, shared, sizes)
        said.append(f"{len(shared)} shared parameter{'s' if len(shared) > 1 else ''} as {'its' if len(shared) == 1 else 'their'} parts")
    if subject.kind == "transformers" and isinstance(subject.options().get(TIE), bool):
        _turned(subject, look, sizes)
    return ", ".join(said)


def _compared(subject: Subject, look: Look, model: Any, other: Any, shared: Dict[str, List[str]], sizes: List[Size]) -> None:
    worst_loss: Tuple[float, str] = (0.0, "")
    worst: Tuple[float, str, str] = (0.0, "", "")
    for size in sizes:
        batch = subject.batch(size[0], size[1], seed=17, model=model)
        passes = []
        for one in (model, other):
            one.zero_grad()
            ran = subject.run(one, batch, seed=3, grad=True)
            ran.loss.backward()
            passes.append(ran)
        worst_loss = max(worst_loss, (gap(passes[1].loss, passes[0].loss), written(size)))
        mine, theirs = dict(model.named_parameters(remove_duplicate=False)), dict(other.named_parameters(remove_duplicate=False))
        for first, names in shared.items():
            parts = [theirs[name].grad for name in names if theirs[name].grad is not None]
            whole = mine[first].grad
            if whole is None or not parts:
                continue
            total = sum((one.to_dense() if one.is_sparse else one for one in parts[1:]), parts[0].to_dense() if parts[0].is_sparse else parts[0])
            worst = max(worst, (gap(total, whole.to_dense() if whole.is_sparse else whole), first, written(size)))
    first = worst[1] or next(iter(shared))
    others = ", ".join(shared[first][1:4])
    tolerance = subject.tolerance
    says = f"With a copy of its own in each place the loss differs by {worst_loss[0]:.2g} at {worst_loss[1]}, though {first} ({others}) has the same values."
    same = look.held("shape.sharing_loss", worst_loss[0], tolerance, "of the loss", says, what="parameter", where=first, size=worst_loss[1])
    if same:
        says = f"The gradient of {first}, shared with {others}, is not the sum of its parts': it differs by {worst[0]:.2g} of the largest at {worst[2]}."
        look.held("shape.sharing_gradient", worst[0], 10 * tolerance, "of the largest value", says, what="parameter", where=first, size=worst[2])


def _turned(subject: Subject, look: Look, sizes: List[Size]) -> None:
    """The other value of the tying option must go through too; its loss is another model's (T5 scales by it), so that it is not compared."""
    turned = not subject.options()[TIE]
    where = f"{TIE}={turned}"
    look.step(where)
    try:
        model = subject.build(subject.asked.seed, options={TIE: turned})
    except Exception as error:  # a refusal, of whatever kind: the fuzz suite judges those
        look.note(f"With {where} the model is not built ({type(error).__name__}: {str(error)[:200]}).")
        return
    for size in sizes:
        batch = subject.batch(size[0], size[1], seed=17, model=model)
        with opened(model) as now:
            try:
                subject.run(model, batch, seed=3, grad=True).loss.backward()
            except Exception as error:  # whatever the user's model raises is what was looked for
                says = f"With {where} a batch of {written(size)} fails ({type(error).__name__}: {str(error)[:200]})."
                look.raised("shape.sharing_loss", error, says, what="option", where=where, module=now.innermost(), size=written(size))
                return
