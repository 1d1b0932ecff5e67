"""The Trainer drops the columns that a collator needs, so samples arrive empty.

With its default `remove_unused_columns=True`, transformers' Trainer keeps only the columns that the model's `forward` takes. A collator that makes
its batch from another column, such as `text`, then gets samples without it. It happens in a single process too: neither pickling nor the data set
is to blame.

It is recognised by the Trainer's own words about columns, by samples without keys, by a KeyError of a collator for a column that the Trainer
says it ignored, and by a data set of size 0 below the Trainer. A collator of a plain DataLoader has no Trainer above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, user_frame, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken, text_of
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts, LogEvent, RankException
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# transformers/trainer.py, _remove_unused_columns() of 4.x and 5.x; the second is the usual wording of collators that name what they got.
WORDING = r"No columns in the dataset match the model's forward method signature|(?:[Ee]xample|[Ss]ample|[Ff]eature|[Aa]vailable|[Gg]ot|with) keys:? ?(?:are )?(?:dict_keys\()?\[\]"
# What a tokenizer's pad() says of samples without input_ids, and datasets of rows without columns.
SYMPTOMS = re.compile(
    r"You should supply an encoding or a list of encodings to this method that includes input_ids, but you provided|Invalid key: \d+ is out of bounds for size 0"
    r"|index out of bounds for size 0|out of range for (?:an empty )?dataset of size 0"
)
MISSING = re.compile(r"^KeyError: ['\"]([\w.-]{1,60})['\"]", re.MULTILINE)
TRAINER = ("transformers/trainer.py", "transformers/trainer_utils.py", "transformers/trainer_seq2seq.py", "/trl/trainer/")


def _notice(scene: Scene) -> LogEvent | None:
    """The Trainer's notice of the columns that it ignored; it is printed in healthy runs too."""
    return next(iter(scene.events("columns-removed")), None)


def _ignored(notice: LogEvent | None) -> tuple[str, ...]:
    names = notice.captured.get("columns", "") if notice is not None else ""
    return tuple(name.strip() for name in names.split(",") if name.strip())


def _column(origin: RankException | None) -> str:
    match = MISSING.search(text_of(origin)) if origin is not None else None
    return match.group(1) if match else ""


def _in_trainer(origin: RankException | None) -> bool:
    return origin is not None and any(part in frame.file.replace("\\", "/") for frame in origin.frames for part in TRAINER)


def _in_collator(origin: RankException | None) -> bool:
    frames = origin.frames if origin is not None else ()
    return any("collat" in f"{frame.name} {frame.text} {frame.file}".lower() for frame in frames)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    origin, notice = scene.origin, _notice(scene)
    heard, column = said(scene, WORDING), _column(origin)
    yield from spoken(scene, WORDING, log_points=26)
    if heard is None and column and column in _ignored(notice):
        yield weighing(26, "suspects-log", f"The collator asks for {column}, which the Trainer says it ignored", origin, notice)
    elif heard is None and origin is not None and SYMPTOMS.search(text_of(origin)) and (notice is not None or _in_trainer(origin) or not origin.frames):
        yield weighing(
            13 if origin.frames or notice is not None else 10, "suspects-log", f"Samples arrive without what they need: {short(origin.message, 120)}", origin
        )
    elif heard is None and column and _in_trainer(origin) and _in_collator(origin):
        yield weighing(10, "suspects-log", f"A collator below the Trainer asks for {column}, which its samples do not have", origin)
    else:
        if heard is not None:
            yield from first_to_fail(scene)
        return
    if _in_collator(origin):
        yield weighing(13 if notice is not None else 3, "suspects-stack", "It was raised where the batch is made, below the Trainer", origin, notice)
    if notice is not None:
        yield weighing(10, "source", f"The Trainer says that it ignored columns: {short(notice.line, 120)}", notice)
    yield from first_to_fail(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    column, ignored = _column(scene.origin), _ignored(_notice(scene))
    what = column or ", ".join(ignored[:4])
    return sentence(f"The Trainer dropped {f'the column {what}' if what else 'columns'} before the batch is made{f' at {frame.where}' if frame else ''}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    return (
        fix(scene, "Keep the columns", "TrainingArguments(..., remove_unused_columns=False)"),
        fix(
            scene,
            "Or tokenise beforehand",
            f"dataset.map(tokenize), so that {frame.where} finds input_ids" if frame else "dataset.map(tokenize): input_ids stay",
        ),
        fix(scene, "See what arrives", "next(iter(trainer.get_train_dataloader()))   in one process, with dataloader_num_workers=0"),
    )


CAUSE = Cause(
    id="trainer-removed-columns",
    title="The Trainer dropped columns that are needed",
    means="The Trainer drops the columns that a collator needs, so samples arrive empty, in a single process too.",
    telling="Example keys: [], a KeyError of a collator below the Trainer, the Trainer's notice of ignored columns.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="the same run with remove_unused_columns=False",
    refines="user-exception",
    accounts_for=("bad-sample", "dataset-lost-in-pickling"),
    wording=WORDING,
)
