"""Masked values and padding must not matter, and a causal model must not look ahead."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Tuple

import torch

from _model_stress.attention import attended, meant_to_look_back, square_givers
from _model_stress.batches import Batch
from _model_stress.fault_location import ill_gradients
from _model_stress.findings import Findings
from _model_stress.mask_checks import SHORT, Masks, label_leaves, own_dtype
from _model_stress.mask_inputs import ROWS, MaskBench, MaskInput, find_port
from _model_stress.module_isolation import View, blamed, inputs_of, mended, own_code, recorded
from _model_stress.tested_model import RunResult, TestedModel
from _shared.child_program import summary_of

LEAST = 1e-9  # relative: what one position passes to a later one, beyond rounding
OFTEN = (
    torch.nn.MultiheadAttention,
    torch.nn.TransformerEncoderLayer,
    torch.nn.TransformerDecoderLayer,
)


def forms(masks: Masks, port: MaskInput) -> None:
    """Forms of one mask that the model accepts give one result."""
    bench, every = masks.bench, list(range(masks.length))
    rows = list(range(masks.rows))
    base, keep = bench.batch.take(rows), bench.keep([every[:-SHORT]] * masks.rows)
    view = View(masks.rows, masks.length, every[:-SHORT], pooled=False)
    reference = bench.run(port.put(base, keep))
    if any(item.dim() > 2 for name, item in bench.leaves.items() if name in port.names):
        return
    for form, other in other_forms(masks, port, keep):
        try:
            ran = bench.run(base.replaced(dict.fromkeys(port.names, other)))
        except Exception as error:  # to refuse a form is right
            masks.findings.note(f"{port.label} as {form} is refused: {summary_of(error)}")
            continue
        worst = masks.off(ran, reference, view)
        if any(
            item.shape != reference.outputs[name].shape
            for name, item in ran.outputs.items()
            if name in reference.outputs
        ):
            continue  # broadcast into something else: not a form that it takes
        if (
            worst > masks.near
            and form == "float"
            and _adds(masks, port, base, keep, reference, view)
        ):
            masks.findings.note(
                f"{port.label} as float is added to the scores, as torch does, and does not count"
                " as 0 and 1."
            )
            continue
        masks.tried.append(form)
        if worst <= masks.near:
            masks.held("mask.form", worst, form=form)
            continue
        fault = masks.blame(
            base.replaced(dict.fromkeys(port.names, other)), port.put(base, keep), view, worst
        )
        sentence = (
            f"{port.label} as {form} gives other outputs than as {str(port.dtype)[6:]}, by"
            f" {worst:.2g} of the largest, without an error"
        )
        masks.found("mask.form", worst, sentence, fault.names, form=form)


def other_forms(masks: Masks, port: MaskInput, keep: Any) -> List[Tuple[str, Any]]:
    own = own_dtype(masks.model)
    forms: Dict[str, Any] = {}
    # torch's convention: what is true is left out, floats are added
    if port.additive or port.name.endswith("key_padding_mask"):
        plain = port._replace(keeps=0, additive=False)
        forms["bool"] = plain.tensor(keep, torch.bool)
        forms["additive float"] = plain._replace(additive=True).tensor(keep, own)
        return list(forms.items())
    for dtype, form in (
        (torch.long, "int64"),
        (torch.int32, "int32"),
        (torch.bool, "bool"),
        (own, "float"),
    ):
        if dtype != port.dtype:
            forms[form] = port.tensor(keep, dtype)
    if port.dims == 2:
        wide = keep[:, None, None, :]
        transformers = masks.tested.kind == "transformers"
        if transformers:
            if masks.pattern.pattern is None and not masks.bench.two_sided:
                # its layers see different things: one 4-D mask would say the same to all
                return list(forms.items())
            sees = (
                masks.pattern.pattern
                if masks.pattern.pattern is not None
                else torch.ones(masks.length, masks.length).bool()
            )
            wide = wide & sees.to(keep.device)
            forms["4-D additive"] = torch.zeros(
                wide.shape, dtype=own, device=keep.device
            ).masked_fill(~wide, torch.finfo(own).min)
        if not transformers or getattr(masks.model.config, "_attn_implementation", "") == "sdpa":
            forms["4-D bool"] = wide if port.keeps else ~wide
    return list(forms.items())


def _adds(
    masks: Masks, port: MaskInput, base: Batch, keep: Any, reference: RunResult, view: View
) -> bool:
    own = own_dtype(masks.model)
    other = port._replace(additive=True, keeps=0).tensor(keep, own)
    try:
        return (
            masks.off(
                masks.bench.run(base.replaced(dict.fromkeys(port.names, other))), reference, view
            )
            <= masks.near
        )
    except Exception:  # it does not take floats that are added
        return False


def all_masked(masks: Masks) -> None:
    """A row in which nothing counts must leave the other rows and all gradients alone."""
    bench, every = masks.bench, list(range(masks.length))
    if masks.rows == 1:
        return
    full = bench.full()
    new = bench.masked(bench.batch, bench.keep([every, [], every]))
    view = View(ROWS, masks.length, every, only=[0, 2])
    worst = masks.off(bench.run(new), bench.run(full), view)
    if worst > masks.near:
        fault = masks.blame(new, full, view, worst)
        sentence = "A fully masked row changes the outputs of the other rows"
        masks.found("mask.all_masked", worst, sentence, fault.names)
        return
    masks.held("mask.all_masked", worst, form="other rows")
    wrong = broken_gradients(masks, new)
    if not wrong:
        masks.held("mask.all_masked", 0.0, form="gradients")
        return
    if broken_gradients(masks, full):
        return  # they are so without it: another suite's business
    maker = nan_maker(masks, new)
    if maker is None:
        masks.findings.note(
            "A fully masked row causes nan gradients in torch's own attention: keep such rows out"
            " of batches.",
            warn=True,
        )
        return
    sentence = (
        f"A fully masked row makes the gradients of {len(wrong)} parameters ({wrong[0]} first) nan,"
        " though the loss does not use it"
    )
    masks.found("mask.all_masked", 1.0, sentence, [maker])


def broken_gradients(masks: Masks, batch: Batch) -> List[str]:
    """The parameters whose gradients are not finite, of a loss of the first and the third row."""
    ran = masks.bench.run(batch, grad=True)
    parts = [
        item[[0, 2]].double().pow(2).mean()
        for item in ran.outputs.values()
        if item.dim() > 1 and item.shape[0] == ROWS and item.requires_grad
    ]
    if not parts:
        return []
    torch.stack(parts).sum().backward()
    wrong = ill_gradients(masks.model)
    masks.model.zero_grad(set_to_none=True)
    return wrong


def nan_maker(masks: Masks, batch: Batch) -> Optional[str]:
    """The first module with nan outputs; None for torch's attention, where nan is by design."""
    modules = dict(masks.model.named_modules())
    calls = recorded(masks.model, lambda: masks.bench.run(batch))
    first = next(
        (
            name
            for (name, _), outputs in calls.gave.items()
            if any(bool(item.isnan().any()) for item in outputs.values())
        ),
        None,
    )
    if first is None:
        return type(masks.model).__name__
    at = first
    while at and not isinstance(modules[at], OFTEN) and not own_code(modules[at]):
        at = at.rpartition(".")[0]
    return (
        None
        if isinstance(modules[at], OFTEN) and not own_code(modules[at])
        else at or type(masks.model).__name__
    )


def finite(masks: Masks, port: MaskInput) -> None:
    """Outputs that count must be numbers: nan under every mask would look like agreement."""
    bench, every = masks.bench, list(range(masks.length))
    for form, out in (("leaves out nothing", []), ("leaves out the end", every[-SHORT:])):
        keep = [item for item in every if item not in out]
        batch = bench.masked(bench.batch, bench.keep([keep] * ROWS))
        bad = sorted(
            name
            for name, item in bench.run(batch).outputs.items()
            if bool(_counting(item, keep, masks.length).isnan().any())
        )
        if not bad or any(bool(item.isnan().any()) for item in _unmasked(bench, port)):
            continue
        where = nan_maker(masks, batch) or type(masks.model).__name__
        sentence = (
            f"Where {port.label} {form}, {bad[0] or 'the output'} is nan at positions that count:"
            " they see nothing"
        )
        masks.found("mask.finite", math.inf, sentence, [where], form=form)
        return
    masks.held("mask.finite", 0.0)


def _counting(output: Any, keep: List[int], length: int) -> Any:
    """The part of an output at positions that count; all of it where no axis has positions."""
    if output.dim() > 1 and output.shape[1] == length:
        return output[:, keep]
    return output


def _unmasked(bench: MaskBench, port: MaskInput) -> List[Any]:
    """The outputs without any mask, where the model runs without it."""
    rest = {name: item for name, item in bench.leaves.items() if name not in port.names}
    if not isinstance(bench.batch.data, dict) or len(rest) == len(bench.leaves):
        return []
    data = {name: item for name, item in bench.batch.data.items() if name not in port.names}
    try:
        return list(bench.run(Batch(data, bench.batch.axes)).outputs.values())
    except Exception:  # it takes no batch without its mask
        return []


def future(masks: Masks) -> None:
    """A later token must not change an earlier output, where the model means to look back only."""
    bench = masks.bench
    group = bench.group("decoder_attention_mask" if bench.two_sided else "")
    cut = masks.length // 2 + 1
    old = bench.full()
    rows = range(ROWS)
    later = bench.filled(
        old,
        {row: list(range(cut, masks.length)) for row in rows},
        group=group - label_leaves(bench),
        pad=False,
    )
    sooner = bench.filled(
        old, {row: list(range(cut)) for row in rows}, group=group - label_leaves(bench), pad=False
    )
    ahead, behind = (
        View(ROWS, masks.length, places, pooled=False)
        for places in (list(range(cut)), list(range(cut, masks.length)))
    )
    before = recorded(masks.model, lambda: bench.run(old))
    leaking = mended(masks.model, lambda: bench.run(later), before, ahead, masks.near)
    worst = masks.off(bench.run(later), bench.run(old), ahead)
    if (worst <= masks.near or masks.only_in_doubles(later, old, ahead, worst)) and not (
        leaking and masks.loss_only
    ):
        masks.held("mask.future", min(worst, masks.near))
        return
    mixing = mended(
        masks.model,
        lambda: bench.run(sooner),
        before,
        behind,
        LEAST if masks.tested.traits.doubles else masks.near,
    )
    why = meant_to_look_back(
        masks.model, masks.pattern, set(mixing) | set(leaking), set(leaking), masks.length
    )
    if not why:
        masks.tried.append("it looks ahead, and nothing forbids that")
        return
    knowing = square_givers(inputs_of(masks.model, lambda: bench.run(old)), masks.length)
    names = blamed(masks.model, list(leaking), knowing, before.modules)
    size = max(worst, *leaking.values()) if leaking else worst
    sentence = f"Later tokens change earlier outputs, by {size:.2g} of the largest, although {why}"
    masks.found("mask.future", size, sentence, names)


def run(tested: TestedModel, findings: Findings) -> None:
    """Find the mask, and hold what the model does with it against what it must do."""
    if tested.traits.noisy:
        findings.skip("two runs in eval() differ, so that nothing can be compared")
    if tested.own_length is None:
        findings.skip("no axis of the batch counts positions")
    findings.step("the mask")
    masks = Masks(tested, findings)
    bench = masks.bench
    if bench.length <= SHORT + 1:
        findings.skip(f"{bench.length} positions are too few")
    bench.port = port = find_port(bench)
    with masks.part("attention", "attention"):
        # with gradients: without them torch's layers take a fused path that shows no attention
        masks.pattern = attended(
            masks.model, lambda: bench.run(bench.full(), grad=True), bench.length
        )
    with masks.part("rows", "rows"):
        masks.mixers  # noqa: B018 - whether rows depend on each other decides how many are tried
    if port is not None:
        polarity = "additive" if port.additive else f"{port.keeps} counts"
        findings.note(f"The mask is {port.label} ({polarity}, {port.dims}-D).")
        with masks.part("mask.finite", "numbers where it counts"):
            finite(masks, port)
        if not masks.broken:
            with masks.part("mask.ignored", "other values under the mask"):
                masks.ignored(port)
        if not masks.broken and not masks.heedless:
            with masks.part("mask.padding", "padded against unpadded"):
                masks.padding(port)
        if not masks.broken and not masks.heedless:
            with masks.part("mask.loss", "padded labels"):
                masks.loss(port)
        if not masks.broken and not masks.heedless:
            with masks.part("mask.form", "forms of the mask"):
                forms(masks, port)
    with masks.part("mask.future", "later tokens"):
        future(masks)
    if port is not None and not masks.broken and not masks.heedless:
        masks.use(masks.single)
        with masks.part("mask.padding, left", "padding before"):
            masks.left(port)
        with masks.part("mask.all_masked", "a row of zeros"):
            all_masked(masks)
    prefix = f"{port.label}: " if port is not None else "it takes no mask: "
    asked = ", ".join(dict.fromkeys(masks.tried))
    if not masks.answers:
        findings.skip(prefix + (asked or "none of the questions applies"))
    findings.summary(prefix + asked)
