"""Columns that the Trainer took away, and whether what was raised asks for one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainprobe.causes.scene import Scene
from trainprobe.causes.statements import text_of
from trainprobe.facts import ColumnsRemoved, LogEvent, Measured, RankException
from trainprobe.model.ranks import and_list

MISSING = re.compile(r"^KeyError: ['\"]([\w.-]{1,60})['\"]", re.MULTILINE)
TRAINER = (
    "transformers/trainer.py",
    "transformers/trainer_utils.py",
    "transformers/trainer_seq2seq.py",
    "/trl/trainer/",
)


@dataclass(frozen=True)
class Dropped:
    """A column that the Trainer took away; `sure` is false if the samples may not have had it."""

    column: str
    seen: ColumnsRemoved
    sure: bool

    @property
    def says(self) -> str:
        of = f" of the {self.seen.of.lower()} set" if self.seen.of else ""
        if not self.sure:
            return (
                f"{self.column} is asked for, and of each sample{of} the Trainer keeps only what"
                " the model takes"
            )
        kept = ""
        if 0 < len(self.seen.kept) <= 8:
            kept = f"; {and_list(self.seen.kept)} {'stays' if len(self.seen.kept) == 1 else 'stay'}"
        return (
            f"{self.column} is asked for, and the Trainer was seen to take this column{of}"
            f" away{kept}"
        )


def notice(scene: Scene) -> LogEvent | None:
    """The Trainer's notice of the columns that it ignored; it is printed in healthy runs too."""
    return next(iter(scene.events("columns-removed")), None)


def ignored(line: LogEvent | None) -> tuple[str, ...]:
    names = line.captured.get("columns", "") if line is not None else ""
    return tuple(name.strip() for name in names.split(",") if name.strip())


def column_of(origin: RankException | None) -> str:
    """The key of a KeyError."""
    match = MISSING.search(text_of(origin)) if origin is not None else None
    return match.group(1) if match else ""


def in_trainer(origin: RankException | None) -> bool:
    return origin is not None and any(
        part in frame.file.replace("\\", "/") for frame in origin.frames for part in TRAINER
    )


def in_collator(origin: RankException | None) -> bool:
    frames = origin.frames if origin is not None else ()
    return any("collat" in f"{frame.name} {frame.text} {frame.file}".lower() for frame in frames)


def seen_removed(scene: Scene) -> tuple[ColumnsRemoved, ...]:
    """What the suspects' Trainers removed; every rank's if the exception's rank is unknown."""
    return tuple(
        fact
        for fact in scene.of(ColumnsRemoved)
        if fact.rank is None or fact.rank in scene.suspects
    )


def dropped(scene: Scene) -> Dropped | None:
    """The column that was asked for and had been removed; None if nobody saw that."""
    origin, shown = scene.origin, seen_removed(scene)
    if origin is None or not shown:
        return None
    key = column_of(origin)
    for one in shown:
        name = key if key in one.removed else "" if key else _quoted(origin, one.removed)
        if name:
            return Dropped(name, one, sure=True)
    by_sample = next((one for one in shown if one.by_sample and key and key not in one.kept), None)
    if by_sample is not None and in_trainer(origin) and in_collator(origin):
        return Dropped(key, by_sample, sure=False)
    return None


def _quoted(origin: RankException, names: Sequence[str]) -> str:
    """The field that a custom collator names in quotes where the batch is made."""
    text = text_of(origin) if in_collator(origin) else ""
    return next((name for name in names if f"'{name}'" in text or f'"{name}"' in text), "")


def whole_before(scene: Scene) -> Measured | None:
    """The measure that the user's data itself gives no empty sample; it comes from another rung."""
    found = [
        fact
        for fact in scene.facts.of(Measured)
        if fact.name == "dataset.empty_samples" and fact.labels.get("where") == "parent"
    ]
    return (
        found[0] if found and scene.plan.dataset and not any(fact.value for fact in found) else None
    )
