"""Attention masks of some form or value change the result wrongly, or fail.

A mask of another number of dimensions, of another type, or for another length than the attention
expects; a row in which everything is masked; padding on the wrong side. Some batches have such
masks and others do not, so it shows late.

It is recognised by the attention's own words about its mask, by a line about a mask that raised,
and by the measurements `mask.*`: the largest difference between a padded and an unpadded, a two-
and a four-dimensional, a boolean and an additive mask.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import (
    number_text,
    stressed_or,
    stressed_summary_or,
    weigh_measures,
    worst,
)
from trainprobe.causes.phrases import Fixes, fixes, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, statement, text_of, weigh_statement
from trainprobe.signatures.messages import message
from trainprobe.stacks.frames import Frame

WORDING = message("model-mask-fault")
MEASURED = "mask."
SHAPES = re.compile(
    r"must match the (?:size of tensor b|existing size)|shape mismatch|not broadcastable|does not"
    r" match the shape of the indexed tensor"
)
ABOUT_A_MASK = re.compile(r"(?i)mask|attn_bias")


def _at_a_mask(scene: Scene) -> Frame | None:
    """The line about a mask at which tensors did not fit each other."""
    origin = scene.origin
    if origin is None or not SHAPES.search(text_of(origin)):
        return None
    innermost = reversed(origin.frames[-3:])
    masks = (frame for frame in innermost if ABOUT_A_MASK.search(f"{frame.text} {frame.name}"))
    return next(masks, None)


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_measures(scene, MEASURED)
    found, place = tuple(weigh_statement(scene, WORDING)), _at_a_mask(scene)
    yield from found
    if place is not None:
        says = (
            f"Tensors do not fit each other at {place.where}, where a mask is applied:"
            f" {short(place.text, 80)}"
        )
        yield weighing(13, "suspects-stack", says, scene.origin)
    if found or place is not None:
        yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    number = worst(scene, MEASURED)
    if number is not None:
        return (
            f"The model's result depends on the form of its attention mask: {number_text(number)}"
        )
    found, frame = statement(scene, WORDING), _at_a_mask(scene) or scene.own_frame
    what = scene.origin.message if scene.origin is not None else "the mask does not fit"
    return (
        "An attention mask does not fit what the attention expects"
        f"{f' at {frame.where}' if frame else ''}: {short(found.text if found else what, 140)}"
    )


def _fixes(scene: Scene) -> Fixes:
    frame = _at_a_mask(scene) or scene.own_frame
    show = "print mask.shape, mask.dtype, x.shape"
    if frame:
        show = f"print the shapes and types of mask and input before {frame.where}"
    return fixes(FIXES, show=show)


FIXES = """
See the shapes
    {show}
Bring the mask into one form
    bool or the query's type; (batch, 1, query length, key length) or what the module's own page
        asks for
Cut mask and input together
    input_ids[:, :n] and attention_mask[:, :n]; with a cache the mask covers past and new tokens
"""

CAUSE = Cause(
    id="model-mask-fault",
    title="An attention mask does not fit the model",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=stressed_summary_or(MEASURED, _summary),
    fixes=stressed_or(MEASURED, _fixes),
    ranks=nobody,
    would_settle="the same batch padded and unpadded, with a 2-D and a 4-D mask, in one process",
    refines="user-exception",
    accounts_for=("model-shape-fault",),
    wording=WORDING,
)
