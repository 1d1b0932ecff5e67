"""Some batch size or length fails, although others work.

A sequence longer than the table of positions, a last batch of another size where a reshape has a
fixed number, a batch of one in a batch normalisation. The model works for most batches, and fails
at the first that differs.

It is recognised by words that tell of a length or a batch size that the model cannot take, by
tensors of other sizes at a line about positions, by any error of shapes after steps that went well,
and by the measurements `shape.*` over a grid of sizes. An error of shapes in the very first step is
one of the code and belongs to `user-exception`.
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
from trainprobe.causes.positions import passed_positions, too_long
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, quote, statement, text_of, weigh_statement
from trainprobe.facts import LogProgress, Progress
from trainprobe.signatures.messages import message

WORDING = message("model-shape-fault")
MEASURED = "shape."
SHAPES = re.compile(
    r"shapes cannot be multiplied|must match the size of tensor b|must match the existing size|is"
    r" invalid for input of size|Sizes of tensors must match except"
    r"|to match target batch_size|size mismatch, (?:m1|got)|[Ee]xpected (?:hidden\[0\]|hidden)"
    r" size|shape mismatch: value tensor|einsum\(\): .{0,80}broadcast"
    r"|index out of range in self|must be divisible by|incompatible dimensions|inconsistent tensor"
    r" size"
)


def _steps(scene: Scene) -> int:
    """How many steps had gone well before."""
    logged = [fact.step or 0 for fact in scene.of(LogProgress) if fact.doing in ("", "train")]
    counted = [
        max(fact.output_steps or 0, fact.optimizer_steps or 0) for fact in scene.of(Progress)
    ]
    return max([*logged, *counted], default=0)


def _weigh(scene: Scene) -> Weighings:
    origin = scene.origin
    yield from weigh_measures(scene, MEASURED)
    found = tuple(weigh_statement(scene, WORDING))
    sizes = too_long(origin)
    table = passed_positions(origin)
    yield from found
    if sizes is not None:
        says = f"{sizes[0]} positions came where the model has {sizes[1]}"
        yield weighing(13, "suspects-stack", says, origin)
    if table is not None:
        says = f"The table whose end was passed is one of positions: `{short(table.text, 80)}`"
        yield weighing(13, "suspects-stack", says, origin)
    steps = _steps(scene)
    shapes = origin is not None and SHAPES.search(text_of(origin)) is not None
    if shapes and steps > 0:
        says = f"The same code had worked for {steps} steps, so it is this batch's shape"
        yield weighing(13, "source", says, origin)
    warned = scene.events("sequence-too-long")
    if warned and (shapes or found):
        yield quote(10, "The tokenizer had warned", warned[0])
    if found or sizes is not None or table is not None or (shapes and (steps > 0 or warned)):
        yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    number, found, sizes = worst(scene, MEASURED), statement(scene, WORDING), too_long(scene.origin)
    if number is not None:
        return f"The model does not work for every batch size and length: {number_text(number)}"
    at = scene.at_own_line
    if sizes is not None:
        return f"A sequence of {sizes[0]} does not fit the model's {sizes[1]} positions{at}"
    what = scene.origin.message if scene.origin is not None else "a shape does not fit"
    return (
        f"The model cannot take the shape of one batch{at}:"
        f" {short(found.text if found is not None else what, 140)}"
    )


def _fixes(scene: Scene) -> Fixes:
    frame, sizes = scene.own_frame, too_long(scene.origin)
    show = f"the shapes before {frame.where}" if frame else "the shapes of each batch"
    return fixes(FIXES, show=show, length=sizes[1] if sizes is not None else "N")


FIXES = """
See the batch that fails
    print {show}
Keep lengths within the model's
    tokenizer(..., truncation=True, max_length={length})
    or drop samples that are longer, on all ranks
Keep batches alike
    DataLoader(..., drop_last=True); x.view(x.size(0), -1) in place of a fixed batch size
"""

CAUSE = Cause(
    id="model-shape-fault",
    title="The model cannot take some batch size or length",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=stressed_summary_or(MEASURED, _summary),
    fixes=stressed_or(MEASURED, _fixes),
    ranks=nobody,
    would_settle=(
        "the model alone over a grid of batch sizes and lengths, the last short batch and the"
        " longest sample among them"
    ),
    refines="user-exception",
    accounts_for=("bad-sample",),
    wording=WORDING,
)
