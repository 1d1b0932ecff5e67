"""Losses, gradients and outputs over batch x length: the same rules must hold at every size, alone and in company, with weights shared and not."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Tuple

from _stress import company, sharing
from _stress.look import Look
from _stress.pinning import backward_fault, first_not_finite, first_of_other_axes, own_frame, recorded
from _stress.sizes import Passed, Runs, Size, allowed_length, resizable, sizes_for, written
from _stress.subject import Subject

TOO_SHORT = ("kernel size can't be greater", "output size is too small", "padding size should be less than")  # of torch's convolutions and poolings
ONE_VALUE = "expected more than 1"  # BatchNorm and InstanceNorm, of one value for a channel in train()
CLOSE_S = 2.0  # no new part is begun with less than that


def run(subject: Subject, look: Look) -> None:
    model = subject.build(subject.asked.seed)
    longest = allowed_length(model, subject.traits.max_length)
    runs = Runs(subject, look, model)
    passed = runs.over(sizes_for(subject, longest))
    went = [one for one in passed if one.error is None]
    if subject.own_length is not None and not resizable(subject):
        look.note("A batch cut to half its length does not go through, or it is of pictures; only the number of rows was varied.")
    _errors(subject, look, runs, passed, longest)
    _not_finite(subject, look, runs, went)
    _output_shapes(subject, look, runs, went)
    _training(look, runs, went)
    parts = []
    for name, part in (("rows", company.rows), ("loss", company.losses), ("sharing", sharing.sharing), ("positions", company.positions)):
        if look.left_s() > CLOSE_S:
            look.step(name)
            parts.append(_asked(name, part, subject, look, [one.size for one in went]))
    sizes = [one.size for one in went]
    top = max(sizes, key=lambda size: size[0] * (size[1] or 1), default=(0, None))
    left = f", {len(runs.left_out)} left out for time or memory" if runs.left_out else ""
    look.number("shape.sizes", float(len(went)), "", largest=written(top))
    look.summary("; ".join([f"{len(went)} sizes up to {written(top)}{left}", *(one for one in parts if one)]))


def _asked(name: str, part: Callable[..., str], subject: Subject, look: Look, went: List[Size]) -> str:
    try:
        return str(part(subject, look, went))
    except Exception as error:  # a size of which this part needs others that fail: they are told above
        frame = own_frame(error)
        if frame is None:
            raise  # it is ours
        look.note(f"What was asked of {name} was not answered ({type(error).__name__}: {str(error)[:200]}).", warn=True)
        return ""


# ---- what raised


def _errors(subject: Subject, look: Look, runs: Runs, passed: List[Passed], longest: Optional[int]) -> None:
    causes: Dict[Tuple[str, str, int], List[Passed]] = {}
    for one in passed:
        if one.error is not None:
            causes.setdefault(one.cause, []).append(one)
    for alike in causes.values():
        _one_error(subject, look, runs, [passed, alike], longest)


def _one_error(subject: Subject, look: Look, runs: Runs, of: List[List[Passed]], longest: Optional[int]) -> None:
    passed, alike = of
    least = min(alike, key=lambda one: (one.size[0] * (one.size[1] or 1), one.size))
    error = least.error
    assert error is not None
    words = f"{type(error).__name__}: {str(error).strip()[:200]}"
    where = f" in {least.module}" if least.module else ""
    lengths = sorted({one.size[1] for one in alike if one.size[1] is not None})
    fine = [one.size[1] for one in passed if one.error is None and one.size[1] is not None]
    if any(word in str(error).lower() for word in TOO_SHORT):
        look.note(f"A batch of {written(least.size)} is too short for the model{where} ({words}).")
        return
    if lengths and fine and min(lengths) > max(fine):
        _limit(subject, look, runs, least, (max(fine), min(lengths), longest))
        return
    if least.refused:
        look.note(f"The model refuses a batch of {written(least.size)}: {words}")
        return
    sizes = ", ".join(written(one.size) for one in alike)
    went = next((written(one.size) for one in passed if one.error is None), "no other size")
    says = f"A batch of {written(least.size)} fails {least.doing}{where} ({words}); of the sizes tried {sizes} fail so, while {went} goes."
    look.raised(
        "shape.raises", error, says, what="size", where=written(least.size), module=least.module, sizes=sizes, rows=least.size[0], length=least.size[1] or 0
    )


def _limit(subject: Subject, look: Look, runs: Runs, least: Passed, lengths: Tuple[int, int, Optional[int]]) -> None:
    """All lengths from some one on fail: that is no fault unless the model declares more."""
    fine, bad, longest = lengths
    while bad - fine > 1 and look.left_s() > CLOSE_S:
        middle = (fine + bad) // 2
        tried = runs.at((1, middle))
        if tried is None:
            break
        fine, bad, least = (middle, bad, least) if tried.error is None else (fine, middle, tried)
    error = least.error
    assert error is not None
    words = f"{type(error).__name__}: {str(error).strip()[:200]}"
    where = f" in {least.module}" if least.module else ""
    name = subject.traits.max_length_name
    if longest is None:
        look.note(f"The model takes at most {fine} positions, which nothing in it declares: {bad} fail{where} ({words}).", warn=True)
        return
    says = f"{name} declares {longest} positions, and the longest that goes is {fine}: {bad} fail {least.doing}{where} ({words})."
    look.raised(
        "shape.limit", error, says, what="attribute", where=name, module=least.module, size=written(least.size), declared=longest, longest=fine, length=bad
    )


# ---- what is not finite


def _not_finite(subject: Subject, look: Look, runs: Runs, went: List[Passed]) -> None:
    """One that starts with nothing to predict (a single position, shifted) has a loss of nan in all sound models: a mean over nothing."""
    judged = [one for one in went if one.size[1] != 1 or one.ill_outputs or not math.isnan(one.loss)]
    if len(judged) < len(went):
        look.note("The loss of one position is nan: with shifted labels nothing is left to be predicted.")
    bad = [one for one in judged if one.ill_outputs or not math.isfinite(one.loss)]
    ill = [one for one in judged if one.ill and one not in bad]
    for name, alike in (("loss", bad), ("gradient", ill)):
        if not alike:
            continue
        least = min(alike, key=lambda one: (one.size[0] * (one.size[1] or 1), one.size))
        every = len(alike) == len(judged)
        module, parameter = _begins(subject, runs, least.size, of_gradient=name == "gradient")
        what = f"The gradients of {parameter or least.ill[0]} are" if name == "gradient" else f"The {'loss is' if not least.ill_outputs else 'outputs are'}"
        sizes = "every size tried" if every else ", ".join(written(one.size) for one in alike)
        says = f"{what} not finite at {sizes}, in float32 and eval()" + (f"; it begins in {module}." if module else ".")
        if every:
            look.held("gradient.not_finite", float(len(alike)), 0, "sizes", says, what="module", where=module, parameter=parameter, of=name)
        else:
            kind = f"shape.{name}"
            look.held(kind, float(len(alike)), 0, "sizes", says, what="size", where=written(least.size), module=module, parameter=parameter, sizes=sizes)
    if judged and not bad and not ill:
        look.held("gradient.not_finite", 0, 0, "sizes", "", what="module")


def _begins(subject: Subject, runs: Runs, size: Size, *, of_gradient: bool) -> Tuple[str, str]:
    """Name the module where it begins, and the first parameter that it reaches."""
    batch = runs.batch(size)
    try:
        if of_gradient:
            module, ill = backward_fault(runs.model, lambda: subject.run(runs.model, batch, seed=7, grad=True).loss)
            return (module or type(runs.model).__name__, ill[0] if ill else "")
        with recorded(runs.model) as calls:
            subject.run(runs.model, batch, seed=7)
    except Exception:  # hooks on views may be refused; the finding stands without the place
        return "", ""
    found = first_not_finite(calls)
    return (type(runs.model).__name__ if found == "" else found or ""), ""


# ---- the outputs' shapes


def _output_shapes(subject: Subject, look: Look, runs: Runs, went: List[Passed]) -> None:
    """Each axis of an output is one number, the rows, the length or a multiple at most sizes: where it is not at the others, those are wrong."""
    for name in sorted({name for one in went for name in (one.shapes or {})}):
        shapes = {one.size: one.shapes[name] for one in went if one.shapes is not None and name in one.shapes}
        dims = [len(shape) for size, shape in shapes.items() if size[0] > 1 and size[1] != 1]  # at one row or position axes get lost
        usual = max(set(dims), key=dims.count, default=0)
        if dims.count(usual) <= 0.6 * len(dims):
            continue
        odd = {size: f"{len(shape)} axes instead of {usual}" for size, shape in shapes.items() if len(shape) != usual}
        for axis in range(usual):
            odd = {**_odd_axis({size: shape[axis] for size, shape in shapes.items() if len(shape) == usual}, axis), **odd}
        if odd:
            least = min(odd, key=lambda size: (size[0] * (size[1] or 1), size))
            output = name or "the output"
            says = f"At {written(least)} {output} has the shape {list(shapes[least])}: {odd[least]} at the other sizes."
            sizes = ", ".join(written(size) for size in odd)
            usually = next(size for size in shapes if size not in odd)
            module = _other_axes(subject, runs, least, usually)
            look.held("shape.output", float(len(odd)), 0, "sizes", says, what="size", where=written(least), output=output, sizes=sizes, module=module)


def _other_axes(subject: Subject, runs: Runs, odd: Size, usual: Size) -> str:
    found = []
    for size in (odd, usual):
        with recorded(runs.model) as calls:
            subject.run(runs.model, runs.batch(size), seed=7)
        found.append(calls)
    name = first_of_other_axes(found[0], found[1])
    return type(runs.model).__name__ if name == "" else name or ""


def _odd_axis(found: Dict[Size, int], axis: int) -> Dict[Size, str]:
    rules: Dict[str, Callable[[Size], int]] = {
        "rows": lambda size: size[0],
        "positions": lambda size: size[1] or -1,
        "rows x positions": lambda size: size[0] * (size[1] or -1),
    }
    fits = {name: [size for size, value in found.items() if rule(size) == value] for name, rule in rules.items()}
    fits.update({f"{usual} values": [size for size, value in found.items() if value == usual] for usual in set(found.values())})
    best = max(fits, key=lambda name: len(fits[name]))
    if len(fits[best]) < 0.7 * len(found):
        return {}
    return {size: f"axis {axis} has {value}, where it has the {best}" for size, value in found.items() if size not in fits[best]}


# ---- train()


def _training(look: Look, runs: Runs, went: List[Passed]) -> None:
    """The smallest and a usual size once more in train(): dropout and batch statistics go other ways."""
    sizes = [one.size for one in went if one.size[1] is None or one.size[1] > 1]
    wanted = [*[size for size in sizes if size[0] == 1][:1], *[size for size in sizes if size[0] > 1][:1]]
    failed = [one for one in runs.over(wanted, train=True) if one.error is not None or one.ill or not math.isfinite(one.loss)]
    evaluated = {one.size: one for one in went}
    told: List[Any] = []
    for one in failed:
        if one.error is not None and one.cause in told:
            continue
        told.append(one.cause)
        if one.error is None:
            if not evaluated[one.size].ill and math.isfinite(evaluated[one.size].loss):
                says = f"In train() the loss or its gradients are not finite at {written(one.size)}, while they are in eval()."
                look.held("shape.gradient", 1, 0, "sizes", says, what="size", where=written(one.size), mode="train", parameter=one.ill[0] if one.ill else "")
            continue
        words = f"{type(one.error).__name__}: {str(one.error).strip()[:200]}"
        where = f" in {one.module}" if one.module else ""
        if ONE_VALUE in str(one.error).lower() and one.size[0] == 1:
            look.note(f"In train() a batch of one row fails{where} ({words}): with drop_last=True no such batch comes.", warn=True)
        elif one.refused:
            look.note(f"In train() the model refuses a batch of {written(one.size)}: {words}")
        else:
            says = f"In train() a batch of {written(one.size)} fails {one.doing}{where} ({words}), while it goes in eval()."
            look.raised("shape.raises", one.error, says, what="size", where=written(one.size), module=one.module, mode="train")
