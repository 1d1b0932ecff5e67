"""Attention masks of some form or value change the result wrongly, or fail.

A mask of another number of dimensions, of another type, or for another length than the attention expects; a row in which everything is masked; padding
on the wrong side. Some batches have such masks and others do not, so it shows late.

It is recognised by the attention's own words about its mask, by a line about a mask that raised, and by the measurements `mask.*`: the largest
difference between a padded and an unpadded, a two- and a four-dimensional, a boolean and an additive mask.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import says, weigh_measures, worst
from trainprobe.causes.scene import Scene, user_frame, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken, text_of
from trainprobe.causes.stressed import stressed_fixes, stressed_summary
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.stacks.frames import Frame
from trainprobe.waits import SuspectGroup

# torch/nn/functional.py (multi_head_attention_forward), aten transformers/sdp_utils_cpp.h and attention.cpp, transformers' models of 4.x.
WORDING = (
    r"[Aa]ttention[ _]mask should be of size|The shape of the [23]D attn_mask is|attn_mask's dimension \d+ is not supported|Expected `attn_mask` shape to be"
    r"|expected `(?:attn_mask|key_padding_mask)` to be `None`|Only bool and floating types of (?:attn_mask|key_padding_mask) are supported"
    r"|Expected attn_mask dtype to be bool|Explicit attn_mask should not be set when is_causal|Wrong shape for input_ids .{0,80} or attention_mask"
    r"|The (?:attention )?mask .{0,60}does not match the (?:sequence|input) length|attempting to perform batched generation with padding_side='right'"
    r"|attn_bias is not correctly aligned|attn_bias_ptr is not correctly aligned|(?:4D|4d) (?:attention )?mask .{0,40}(?:should|must|Incorrect)"
    r"|Incorrect 4D attention_mask shape"
)
SHAPES = re.compile(r"must match the (?:size of tensor b|existing size)|shape mismatch|not broadcastable|does not match the shape of the indexed tensor")
ABOUT_A_MASK = re.compile(r"(?i)mask|attn_bias")


def _at_a_mask(scene: Scene) -> Frame | None:
    """The line about a mask at which tensors did not fit each other."""
    origin = scene.origin
    if origin is None or not SHAPES.search(text_of(origin)):
        return None
    return next((frame for frame in reversed(origin.frames[-3:]) if ABOUT_A_MASK.search(f"{frame.text} {frame.name}")), None)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    yield from weigh_measures(scene, "mask.")
    heard, place = tuple(spoken(scene, WORDING)), _at_a_mask(scene)
    yield from heard
    if place is not None:
        yield weighing(13, "suspects-stack", f"Tensors do not fit each other at {place.where}, where a mask is applied: {short(place.text, 80)}", scene.origin)
    if heard or place is not None:
        yield from first_to_fail(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    if told := stressed_summary(group, "mask."):
        return told
    scene = Scene(facts, group)
    number, heard, place = worst(scene, "mask."), said(scene, WORDING), _at_a_mask(scene)
    if number is not None:
        return sentence(f"The model's result depends on the form of its attention mask: {says(number)}")
    frame = place or (user_frame(scene.origin.frames) if scene.origin is not None else None)
    what = short(heard.text, 140) if heard is not None else short(scene.origin.message, 140) if scene.origin is not None else "the mask does not fit"
    return sentence(f"An attention mask does not fit what the attention expects{f' at {frame.where}' if frame else ''}: {what}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    if found := stressed_fixes(scene, "mask."):
        return found
    place = _at_a_mask(scene) or (user_frame(scene.origin.frames) if scene.origin is not None else None)
    return (
        fix(
            scene, "See the shapes", f"print the shapes and types of mask and input before {place.where}" if place else "print mask.shape, mask.dtype, x.shape"
        ),
        fix(scene, "Bring the mask into one form", "bool or the query's type; (batch, 1, query length, key length) or what the module's own page asks for"),
        fix(scene, "Cut mask and input together", "input_ids[:, :n] and attention_mask[:, :n]; with a cache the mask covers past and new tokens"),
    )


CAUSE = Cause(
    id="model-mask-fault",
    title="An attention mask does not fit the model",
    means="Attention masks of some form or value change the result wrongly, or fail.",
    telling="The attention's words about the size, dimension or type of its mask; measured differences between forms of one mask.",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="the same batch padded and unpadded, with a 2-D and a 4-D mask, in one process",
    refines="user-exception",
    accounts_for=("model-shape-fault",),
    wording=WORDING,
)
