"""The Trainer drops the columns that a collator needs, so samples arrive empty.

With its default `remove_unused_columns=True`, transformers' Trainer keeps only the columns that the
model's `forward` takes. A collator that makes its batch from another column, such as `text`, then
gets samples without it. It happens in a single process too: neither pickling nor the data set is to
blame.

It is recognised by the columns that the witness saw the Trainer take away, where what was raised
asks for one; by the Trainer's own words about columns, by samples without keys, and by a data set
of size 0 below the Trainer. A collator of a plain DataLoader has no Trainer above it.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.dropped_columns import (
    column_of,
    dropped,
    ignored,
    in_collator,
    in_trainer,
    notice,
    seen_removed,
    whole_before,
)
from trainprobe.causes.phrases import Fixes, fixes, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, statement, text_of, weigh_statement
from trainprobe.signatures.messages import message

WORDING = message("trainer-removed-columns")
# What a tokenizer's pad() says of samples without input_ids, and datasets of rows without columns.
SYMPTOMS = re.compile(
    r"You should supply an encoding or a list of encodings to this method that includes input_ids,"
    r" but you provided|Invalid key: \d+ is out of bounds for size 0"
    r"|index out of bounds for size 0|out of range for (?:an empty )?dataset of size 0"
)


def _weigh(scene: Scene) -> Weighings:
    origin, line, taken = scene.origin, notice(scene), dropped(scene)
    removed = next((one for one in seen_removed(scene) if one.removed), None)
    found, column = statement(scene, WORDING), column_of(origin)
    empty = found is None and origin is not None and SYMPTOMS.search(text_of(origin)) is not None
    yield from weigh_statement(scene, WORDING, log_points=26)
    if taken is not None:
        yield weighing(26 if taken.sure else 13, "suspects-log", taken.says, origin, taken.seen)
    elif found is None and column and column in ignored(line):
        says = f"The collator asks for {column}, which the Trainer says it ignored"
        yield weighing(26, "suspects-log", says, origin, line)
    elif (
        empty
        and origin is not None
        and (line is not None or removed is not None or in_trainer(origin) or not origin.frames)
    ):
        known = bool(origin.frames) or line is not None or removed is not None
        says = f"Samples arrive without what they need: {short(origin.message, 120)}"
        yield weighing(13 if known else 10, "suspects-log", says, origin, removed)
    elif found is None and column and in_trainer(origin) and in_collator(origin):
        says = f"A collator below the Trainer asks for {column}, which its samples do not have"
        yield weighing(10, "suspects-log", says, origin)
    else:
        if found is not None:
            yield from first_to_fail(scene)
        return
    if in_collator(origin):
        known = line is not None or (taken is not None and taken.sure)
        says = "It was raised where the batch is made, from what the Trainer left"
        yield weighing(13 if known else 3, "suspects-stack", says, origin, line)
    if line is not None:
        yield weighing(
            10, "source", f"The Trainer says that it ignored columns: {short(line.line, 120)}", line
        )
    if (whole := whole_before(scene)) is not None:
        says = "The data itself gives whole samples: what is missing was taken away later"
        yield weighing(6, "probe-outcome", says, whole)
    yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    taken = dropped(scene)
    what = (taken.column if taken is not None else column_of(scene.origin)) or ", ".join(
        ignored(notice(scene))[:4]
    )
    return (
        f"The Trainer dropped {f'the column {what}' if what else 'columns'} before the batch is"
        f" made{scene.at_own_line}"
    )


FIXES = """
Keep the columns
    TrainingArguments(..., remove_unused_columns=False)
Or tokenise beforehand
    {tokenise}
See what arrives
    next(iter(trainer.get_train_dataloader()))   in one process, with dataloader_num_workers=0
"""


def _fixes(scene: Scene) -> Fixes:
    frame = scene.own_frame
    tokenise = "dataset.map(tokenize): input_ids stay"
    if frame:
        tokenise = f"dataset.map(tokenize), so that {frame.where} finds input_ids"
    return fixes(FIXES, tokenise=tokenise)


CAUSE = Cause(
    id="trainer-removed-columns",
    title="The Trainer dropped columns that are needed",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="the same run with remove_unused_columns=False",
    refines="user-exception",
    accounts_for=("bad-sample", "dataset-lost-in-pickling"),
    wording=WORDING,
)
