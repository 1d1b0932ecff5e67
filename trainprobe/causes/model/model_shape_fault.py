"""Some batch size or length fails, although others work.

A sequence longer than the table of positions, a last batch of another size where a reshape has a fixed number, a batch of one in a batch
normalisation. The model works for most batches, and fails at the first that differs.

It is recognised by words that tell of a length or a batch size that the model cannot take, by tensors of other sizes at a line about positions, by
any error of shapes after steps that went well, and by the measurements `shape.*` over a grid of sizes. An error of shapes in the very first
step is one of the code and belongs to `user-exception`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import says, weigh_measures, worst
from trainprobe.causes.positions import passed_positions, too_long
from trainprobe.causes.scene import Scene, user_frame, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken, text_of
from trainprobe.causes.stressed import stressed_fixes, stressed_summary
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts, LogProgress, Progress
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# torch/nn/functional.py (batch_norm), transformers' models (CLIP, GPT, BERT), Megatron-LM, fairseq's positional embeddings.
WORDING = (
    r"Expected more than 1 value per channel when training|Expected more than 1 spatial element when training"
    r"|[Ss]equence length must be less than max_position_embeddings|longer than the (?:specified )?maximum (?:sequence|position)\w* length of the model"
    r"|[Cc]annot forward sequence of length \d+, (?:block size|max)|exceeds? (?:the )?(?:maximum|max)[_ ](?:position_embeddings|sequence length|source positions|block size)"
    r"|[Kk]ernel size can't be greater than actual input size|Output size is too small|Sentences? lengths? should not exceed max_tokens"
    r"|input length .{0,40} exceeds maximum"
)
SHAPES = re.compile(
    r"shapes cannot be multiplied|must match the size of tensor b|must match the existing size|is invalid for input of size|Sizes of tensors must match except"
    r"|to match target batch_size|size mismatch, (?:m1|got)|[Ee]xpected (?:hidden\[0\]|hidden) size|shape mismatch: value tensor|einsum\(\): .{0,80}broadcast"
    r"|index out of range in self|must be divisible by|incompatible dimensions|inconsistent tensor size"
)


def _steps(scene: Scene) -> int:
    """How many steps had gone well before."""
    told = [fact.step or 0 for fact in scene.facts.of(LogProgress, cell=scene.cell) if fact.doing in ("", "train")]
    counted = [max(fact.output_steps or 0, fact.optimizer_steps or 0) for fact in scene.facts.of(Progress, cell=scene.cell)]
    return max([*told, *counted], default=0)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    origin = scene.origin
    yield from weigh_measures(scene, "shape.")
    heard, sizes = tuple(spoken(scene, WORDING)), too_long(origin)
    yield from heard
    if sizes is not None:
        yield weighing(13, "suspects-stack", f"{sizes[0]} positions came where the model has {sizes[1]}", origin)
    table = passed_positions(origin)
    if table is not None:
        yield weighing(13, "suspects-stack", f"The table whose end was passed is one of positions: `{short(table.text, 80)}`", origin)
    late = _steps(scene)
    shapes = origin is not None and SHAPES.search(text_of(origin)) is not None
    if shapes and late > 0:
        yield weighing(13, "source", f"The same code had worked for {late} steps, so it is this batch's shape", origin)
    warned = scene.events("sequence-too-long")
    if warned and (shapes or heard):
        yield weighing(10, "suspects-log", f"The tokenizer had warned: {short(warned[0].line, 120)}", warned[0])
    if heard or sizes is not None or table is not None or (shapes and (late > 0 or warned)):
        yield from first_to_fail(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    if told := stressed_summary(group, "shape."):
        return told
    scene = Scene(facts, group)
    number, heard, sizes, origin = worst(scene, "shape."), said(scene, WORDING), too_long(scene.origin), scene.origin
    if number is not None:
        return sentence(f"The model does not work for every batch size and length: {says(number)}")
    frame = user_frame(origin.frames) if origin is not None else None
    at = f" at {frame.where}" if frame is not None else ""
    if sizes is not None:
        return sentence(f"A sequence of {sizes[0]} does not fit the model's {sizes[1]} positions{at}")
    what = short(heard.text, 140) if heard is not None else short(origin.message, 140) if origin is not None else "a shape does not fit"
    return sentence(f"The model cannot take the shape of one batch{at}: {what}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    if found := stressed_fixes(scene, "shape."):
        return found
    frame, sizes = user_frame(scene.origin.frames) if scene.origin is not None else None, too_long(scene.origin)
    length = sizes[1] if sizes is not None else "N"
    return (
        fix(scene, "See the batch that fails", f"print the shapes before {frame.where}" if frame else "print the shapes of each batch before the model"),
        fix(scene, "Keep lengths within the model's", f"tokenizer(..., truncation=True, max_length={length})", "or drop samples that are longer, on all ranks"),
        fix(scene, "Keep batches alike", "DataLoader(..., drop_last=True); x.view(x.size(0), -1) in place of a fixed batch size"),
    )


CAUSE = Cause(
    id="model-shape-fault",
    title="The model cannot take some batch size or length",
    means="Some batch size or length fails, or gives another loss than it must.",
    telling="Words about a length or a batch of one that the model cannot take; an error of shapes after steps that went well.",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="the model alone over a grid of batch sizes and lengths, the last short batch and the longest sample among them",
    refines="user-exception",
    accounts_for=("bad-sample",),
    wording=WORDING,
)
