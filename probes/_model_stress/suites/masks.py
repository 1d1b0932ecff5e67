"""Masked values and padding must not matter, and a causal model must not look ahead."""

from __future__ import annotations

from _model_stress.attention import attended, meant_to_look_back, square_givers
from _model_stress.findings import Findings
from _model_stress.mask_checks import SHORT, Masks, label_leaves
from _model_stress.mask_forms import all_masked, forms
from _model_stress.mask_inputs import ROWS, find_port
from _model_stress.module_isolation import View, blamed, inputs_of, mended, recorded
from _model_stress.tested_model import TestedModel

LEAST = 1e-9  # what is carried from one position to a later one, relative: anything but rounding


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
        masks.tried.append("it looks ahead, and nothing says that it must not")
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
        masks.pattern = attended(masks.model, lambda: bench.run(bench.full()), bench.length)
    with masks.part("rows", "rows"):
        masks.mixers  # noqa: B018 - whether rows depend on each other decides how many are tried
    if port is not None:
        polarity = "additive" if port.additive else f"{port.keeps} counts"
        findings.note(f"The mask is {port.label} ({polarity}, {port.dims}-D).")
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
    prefix = f"{port.label}: " if port is not None else "no mask was seen among what it takes: "
    asked = ", ".join(dict.fromkeys(masks.tried))
    if not masks.answers:
        findings.skip(prefix + (asked or "none of the questions applies"))
    findings.summary(prefix + asked)
