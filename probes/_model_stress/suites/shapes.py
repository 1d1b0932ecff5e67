"""Losses, gradients and outputs must follow the same rules at every batch x length."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Tuple

from _model_stress import batch_invariance, memory_layout, shared_parameters
from _model_stress.fault_location import (
    backward_fault,
    first_not_finite,
    first_of_other_axes,
    own_frame,
    recorded,
)
from _model_stress.findings import Findings, NotApplicableError
from _model_stress.sizes import (
    TOO_SHORT,
    Passed,
    Runs,
    Size,
    allowed_length,
    order_of,
    resizable,
    sizes_for,
    written,
)
from _model_stress.tested_model import TestedModel
from _shared.child_program import summary_of

# BatchNorm and InstanceNorm, of one value for a channel in train()
ONE_VALUE = "expected more than 1"
CLOSE_S = 2.0  # no new part is begun with less than that


def run(tested: TestedModel, findings: Findings) -> None:
    model = tested.build(tested.request.seed)
    longest = allowed_length(model, tested.traits.max_length)
    runs = Runs(tested, findings, model)
    passed = runs.over(sizes_for(tested, longest))
    went = [item for item in passed if item.error is None]
    if tested.own_length is not None and not resizable(tested):
        findings.note(
            "A batch of half the length fails, or holds pictures: only the number of rows was"
            " varied."
        )
    _errors(runs, passed, longest)
    _not_finite(runs, went)
    _output_shapes(runs, went)
    _training(runs, went)
    parts = []
    for name, part in (
        ("rows", batch_invariance.rows),
        ("loss", batch_invariance.losses),
        ("sharing", shared_parameters.sharing),
        ("positions", batch_invariance.positions),
        ("layouts", memory_layout.layouts),
    ):
        if findings.left_s() > CLOSE_S:
            findings.step(name)
            parts.append(_asked(name, part, tested, findings, [item.size for item in went]))
    sizes = [item.size for item in went]
    top = max(sizes, key=lambda size: size[0] * (size[1] or 1), default=(0, None))
    left = f", {len(runs.left_out)} left out for time or memory" if runs.left_out else ""
    findings.number("shape.sizes", float(len(went)), "", largest=written(top))
    findings.summary(
        "; ".join(
            [f"{len(went)} sizes up to {written(top)}{left}", *(item for item in parts if item)]
        )
    )


def _asked(
    name: str, part: Callable[..., str], tested: TestedModel, findings: Findings, went: List[Size]
) -> str:
    try:
        return str(part(tested, findings, went))
    except NotApplicableError as error:
        findings.note(f"{name} are not compared: {error}.")
        return ""
    except Exception as error:
        # a size of which this part needs others that fail: they are told above
        frame = own_frame(error)
        if frame is None:
            raise  # it is ours
        findings.note(
            f"The check of {name} could not be finished ({summary_of(error)}).", warn=True
        )
        return ""


# ---- what raised


def _errors(runs: Runs, passed: List[Passed], longest: Optional[int]) -> None:
    causes: Dict[Tuple[str, str, int], List[Passed]] = {}
    for item in passed:
        if item.error is not None:
            causes.setdefault(item.cause, []).append(item)
    for alike in causes.values():
        _one_error(runs, passed, alike, longest)


def _one_error(
    runs: Runs, passed: List[Passed], alike: List[Passed], longest: Optional[int]
) -> None:
    findings, least = runs.findings, min(alike, key=lambda item: item.order)
    error = least.error
    assert error is not None
    lengths = sorted({item.size[1] for item in alike if item.size[1] is not None})
    fine = [item.size[1] for item in passed if item.error is None and item.size[1] is not None]
    if any(text in str(error).lower() for text in TOO_SHORT):
        findings.note(
            f"A batch of {written(least.size)} is too short for the model{least.failure}."
        )
        return
    if lengths and fine and min(lengths) > max(fine):
        _limit(runs, least, max(fine), min(lengths), longest)
        return
    if least.refused:
        findings.note(f"The model refuses a batch of {written(least.size)}: {summary_of(error)}")
        return
    sizes = ", ".join(written(item.size) for item in alike)
    went = next((written(item.size) for item in passed if item.error is None), "no other size")
    sentence = (
        f"A batch of {written(least.size)} fails {least.doing}{least.failure}. Of the sizes tried,"
        f" {sizes} fail like this; {went} works."
    )
    findings.raised(
        "shape.raises",
        error,
        sentence,
        what="size",
        where=written(least.size),
        module=least.module,
        sizes=sizes,
        rows=least.size[0],
        length=least.size[1] or 0,
    )


def _limit(runs: Runs, least: Passed, fine: int, bad: int, longest: Optional[int]) -> None:
    """All lengths from some one on fail: that is no fault unless the model declares more."""
    findings, name = runs.findings, runs.tested.traits.max_length_name
    while bad - fine > 1 and findings.left_s() > CLOSE_S:
        middle = (fine + bad) // 2
        tried = runs.at((1, middle))
        if tried is None:
            break
        fine, bad, least = (middle, bad, least) if tried.error is None else (fine, middle, tried)
    error = least.error
    assert error is not None
    if longest is None:
        findings.note(
            f"The model takes at most {fine} positions, which nothing in it declares: {bad} fail"
            f"{least.failure}.",
            warn=True,
        )
        return
    sentence = (
        f"{name} declares {longest} positions, but the longest that works is {fine}: {bad} fail"
        f" {least.doing}{least.failure}."
    )
    findings.raised(
        "shape.limit",
        error,
        sentence,
        what="attribute",
        where=name,
        module=least.module,
        size=written(least.size),
        declared=longest,
        longest=fine,
        length=bad,
    )


# ---- what is not finite


def _not_finite(runs: Runs, went: List[Passed]) -> None:
    """Report losses and gradients that are not finite; a single position has nothing to predict."""
    findings = runs.findings
    judged = [
        item for item in went if item.size[1] != 1 or item.ill_outputs or not math.isnan(item.loss)
    ]
    if len(judged) < len(went):
        findings.note(
            "The loss of one position is nan: with shifted labels nothing is left to predict."
        )
    bad = [item for item in judged if item.ill_outputs or not math.isfinite(item.loss)]
    ill = [item for item in judged if item.ill and item not in bad]
    for name, alike in (("loss", bad), ("gradient", ill)):
        if not alike:
            continue
        least = min(alike, key=lambda item: item.order)
        # a size has to do with it where it fails at some; at most of them the data have
        every = 2 * len(alike) > len(judged)
        module, parameter = _begins(runs, least.size, of_gradient=name == "gradient")
        what = (
            f"The gradients of {parameter or least.ill[0]} are"
            if name == "gradient"
            else f"The {'loss is' if not least.ill_outputs else 'outputs are'}"
        )
        sizes = (
            "every size tried"
            if len(alike) == len(judged)
            else ", ".join(written(item.size) for item in alike)
        )
        sentence = f"{what} not finite at {sizes}, in float32 and eval()" + (
            f"; it begins in {module}." if module else "."
        )
        if every:
            findings.counted(
                "gradient.not_finite",
                len(alike),
                "sizes",
                sentence,
                what="module",
                where=module,
                parameter=parameter,
                of=name,
            )
        else:
            kind = f"shape.{name}"
            findings.counted(
                kind,
                len(alike),
                "sizes",
                sentence,
                what="size",
                where=written(least.size),
                module=module,
                parameter=parameter,
                sizes=sizes,
            )
    if judged and not bad and not ill:
        findings.clean("gradient.not_finite", "sizes", what="module")


def _begins(runs: Runs, size: Size, *, of_gradient: bool) -> Tuple[str, str]:
    """Name the module where it begins, and the first parameter that it reaches."""
    batch, tested = runs.batch(size), runs.tested
    try:
        if of_gradient:
            module, ill = backward_fault(
                runs.model, lambda: tested.run(runs.model, batch, seed=7, grad=True).loss
            )
            return (module or type(runs.model).__name__, ill[0] if ill else "")
        with recorded(runs.model) as calls:
            tested.run(runs.model, batch, seed=7)
    except Exception:  # hooks on views may be refused; the finding stands without the place
        return "", ""
    found = first_not_finite(calls)
    return (type(runs.model).__name__ if found == "" else found or ""), ""


# ---- the outputs' shapes


def _output_shapes(runs: Runs, went: List[Passed]) -> None:
    """Each axis must be one number, the rows, the length or a multiple at all sizes."""
    for name in sorted({name for item in went for name in item.shapes or {}}):
        shapes = {
            item.size: item.shapes[name]
            for item in went
            if item.shapes is not None and name in item.shapes
        }
        # at one row or position axes get lost
        dims = [len(shape) for size, shape in shapes.items() if size[0] > 1 and size[1] != 1]
        usual = max(set(dims), key=dims.count, default=0)
        if dims.count(usual) <= 0.6 * len(dims):
            continue
        odd = {
            size: f"{len(shape)} axes instead of {usual}"
            for size, shape in shapes.items()
            if len(shape) != usual
        }
        for axis in range(usual):
            odd = {
                **_odd_axis(
                    {size: shape[axis] for size, shape in shapes.items() if len(shape) == usual},
                    axis,
                ),
                **odd,
            }
        if odd:
            least = min(odd, key=order_of)
            output = name or "the output"
            sentence = (
                f"At {written(least)} {output} has the shape {list(shapes[least])}: {odd[least]} at"
                " the other sizes."
            )
            sizes = ", ".join(written(size) for size in odd)
            usually = next(size for size in shapes if size not in odd)
            module = _other_axes(runs, least, usually)
            runs.findings.counted(
                "shape.output",
                len(odd),
                "sizes",
                sentence,
                what="size",
                where=written(least),
                output=output,
                sizes=sizes,
                module=module,
            )


def _other_axes(runs: Runs, odd: Size, usual: Size) -> str:
    found = []
    for size in (odd, usual):
        with recorded(runs.model) as calls:
            runs.tested.run(runs.model, runs.batch(size), seed=7)
        found.append(calls)
    name = first_of_other_axes(found[0], found[1])
    return type(runs.model).__name__ if name == "" else name or ""


def _odd_axis(found: Dict[Size, int], axis: int) -> Dict[Size, str]:
    rules: Dict[str, Callable[[Size], int]] = {
        "rows": lambda size: size[0],
        "positions": lambda size: size[1] or -1,
        "rows x positions": lambda size: size[0] * (size[1] or -1),
    }
    fits = {
        name: [size for size, value in found.items() if rule(size) == value]
        for name, rule in rules.items()
    }
    fits.update(
        {
            f"{usual} values": [size for size, value in found.items() if value == usual]
            for usual in set(found.values())
        }
    )
    best = max(fits, key=lambda name: len(fits[name]))
    if len(fits[best]) < 0.7 * len(found):
        return {}
    return {
        size: f"axis {axis} has {value} instead of the {best}"
        for size, value in found.items()
        if size not in fits[best]
    }


# ---- train()


def _training(runs: Runs, went: List[Passed]) -> None:
    """Run two sizes again in train(), where dropout and batch statistics differ."""
    findings = runs.findings
    sizes = [item.size for item in went if item.size[1] is None or item.size[1] > 1]
    wanted = [
        *[size for size in sizes if size[0] == 1][:1],
        *[size for size in sizes if size[0] > 1][:1],
    ]
    failed = [
        item
        for item in runs.over(wanted, train=True)
        if item.error is not None or item.ill or not math.isfinite(item.loss)
    ]
    evaluated = {item.size: item for item in went}
    reported: List[Any] = []
    for item in failed:
        if item.error is not None and item.cause in reported:
            continue
        reported.append(item.cause)
        if item.error is None:
            if not evaluated[item.size].ill and math.isfinite(evaluated[item.size].loss):
                sentence = (
                    f"In train() the loss or its gradients are not finite at {written(item.size)},"
                    " while they are in eval()."
                )
                findings.counted(
                    "shape.gradient",
                    1,
                    "sizes",
                    sentence,
                    what="size",
                    where=written(item.size),
                    mode="train",
                    parameter=item.ill[0] if item.ill else "",
                )
            continue
        if ONE_VALUE in str(item.error).lower() and item.size[0] == 1:
            findings.note(
                f"In train() a batch of one row fails{item.failure}: drop_last=True avoids such"
                " batches.",
                warn=True,
            )
        elif item.refused:
            findings.note(
                f"In train() the model refuses a batch of {written(item.size)}:"
                f" {summary_of(item.error)}"
            )
        else:
            sentence = (
                f"In train() a batch of {written(item.size)} fails {item.doing}{item.failure},"
                " but works in eval()."
            )
            findings.raised(
                "shape.raises",
                item.error,
                sentence,
                what="size",
                where=written(item.size),
                module=item.module,
                mode="train",
            )
