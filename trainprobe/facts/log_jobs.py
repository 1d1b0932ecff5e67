"""What logs say of the job as a whole, and how far each rank came by what it printed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from trainprobe.facts import fields
from trainprobe.facts.log_rows import Row, rows_of, streams
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

MOST_RANKS = 100_000
MARKS_CAP = 40


@dataclass(frozen=True)
class LogJob(Fact):
    """One attempt of a job as its logs tell of it.

    `world_size` is None where nothing tells; `launcher` is torchrun, slurm, deepspeed …
    `files` are the files read, `attempts` how many there were in all, `first_at` and `last_at` Unix seconds. `ends` is true where the
    files' own last lines were read, `lines` how many lines they have. `last_place` orders their last line, `last_seen_at` names it.
    """

    launcher: str = ""
    world_size: int | None = None
    attempts: int = 1
    files: tuple[str, ...] = ()
    first_at: float | None = None
    last_at: float | None = None
    ends: bool = True
    lines: int = 0
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    first_place: int = 0
    last_place: int = 0
    last_seen_at: str = ""
    last_text: str = ""


@dataclass(frozen=True)
class LogProgress(Fact):
    """The last progress that one rank printed: `step` of how many (`of`, None where not told), `epoch`, and when. `finished` marks the line that says that training completed.

    `marks` are (place, step) of the last lines that told a step. `first_step`, `first_place` and `first_at` are those of the first progress line; `place` that of the last one. `seen_at` is its file and line.
    """

    step: int | None = None
    of: int | None = None
    epoch: float | None = None
    at: float | None = None
    place: int | None = None
    finished: bool = False
    first_step: int | None = None
    first_place: int | None = None
    first_at: float | None = None
    seen_at: str = ""
    line: str = ""
    marks: tuple[tuple[int, int], ...] = ()


_WORLD = re.compile(
    r"\bworld[ _]?size['\"]?[ ]{0,2}[:=)]{1,2}[ ]{0,2}(\d{1,6})\b|\bnranks (\d{1,6})\b|\bWORLD_SIZE=(\d{1,6})\b|--world[-_]size[= ](\d{1,6})\b"
    r"|\bMEMBER: \d{1,6}/(\d{1,6})\b|\bwith (\d{1,6}) processes\b|\bSLURM_NTASKS=(\d{1,6})\b",
    re.IGNORECASE,
)
_LAUNCHERS = (
    ("torchrun", re.compile(r"torch[./]distributed[./](?:run|elastic|launcher)|\btorchrun\b|ChildFailedError|torchelastic")),
    ("deepspeed", re.compile(r"\[launch\.py:\d|\[runner\.py:\d|deepspeed[./]launcher")),
    ("accelerate", re.compile(r"accelerate[./]commands[./]launch|\baccelerate launch\b")),
    ("lightning", re.compile(r"(?:pytorch_)?lightning[./](?:pytorch[./])?(?:trainer|strategies|fabric)|distributed_backend=")),
    ("ray", re.compile(r"\bray::|ray[./](?:train|tune)[./]|\(raylet\)")),
    ("mpirun", re.compile(r"\bmpirun\b|\bmpiexec\b|ORTE|PRTE")),
    ("slurm", re.compile(r"\bsrun: |\bslurmstepd: |SLURM_JOB_ID")),
    ("spawn", re.compile(r"torch[./]multiprocessing[./]spawn")),
)
_DONE = re.compile(
    r"(?i)\btraining (?:has )?(?:is )?(?:been )?(?:complete[d]?|finished|done|ended|succeeded)\b|\bfinished training\b|\bdone training\b|`?Trainer\.fit`? stopped: `?max_(?:steps|epochs)"
    r"|\btrain_runtime\b|Training completed\. Do not forget|\ball done\b|\bjob (?:completed|finished) success|\btraining (?:finished|completed) (?:in|after)|^done\.?$"
    r"|\bfinished successfully\b|\bsuccessfully (?:finished|completed)\b|\bexit(?:ed)? (?:with )?(?:code|status)[ :=]{1,2}0\b|\[after training is done\]|\bSucceeded\b$"
)
_NOT_DONE = re.compile(
    r"(?i)\bepoch\b.{0,40}\b(?:complete|finished|done)|not (?:been )?(?:complete|finish)|before training|until training|when training|after training is done\?|if training"
)


def parse_log_job(record: Evidence) -> list[Fact]:
    """One LogJob per extract; `join_log_jobs` makes one per attempt of them."""
    rows = rows_of(record)
    path = fields.text(record.data, "path")
    ranks = sorted({row.rank for row in rows if row.rank is not None})
    times = [row.at for row in rows if row.at is not None]
    last = next((row for row in reversed(rows) if row.text.strip()), None)
    return [
        LogJob(
            evidence=(record.id,),
            cell=record.cell,
            launcher=_launcher(rows),
            world_size=_world(rows),
            files=(path,) if path else (),
            first_at=min(times, default=None),
            last_at=max(times, default=None),
            ends=fields.flag(record.data, "has_end") is not False,
            lines=fields.whole(record.data, "lines") or len(rows),
            ranks=tuple(ranks[:MOST_RANKS]),
            hosts=tuple(dict.fromkeys(row.host for row in rows if row.host)),
            first_place=rows[0].place if rows else 0,
            last_place=last.place if last else 0,
            last_seen_at=last.seen_at if last else "",
            last_text=last.text[:200] if last else "",
        )
    ]


def _launcher(rows: Iterable[Row]) -> str:
    seen = {name for row in rows for name, pattern in _LAUNCHERS if pattern.search(row.text[:600])}
    return next((name for name, _ in _LAUNCHERS if name in seen), "")


def _world(rows: Iterable[Row]) -> int | None:
    """The largest world that is told of: sub-groups have worlds of their own."""
    told = []
    for row in rows:
        text = row.text[:1000]
        if "nranks" in text or "orld" in text or "WORLD" in text or "MEMBER" in text or "processes" in text or "NTASKS" in text:
            told += [int(number) for match in _WORLD.finditer(text) for number in match.groups() if number]
    return max((size for size in told if 1 <= size <= MOST_RANKS), default=None)


def parse_log_progress(record: Evidence) -> list[Fact]:
    """One LogProgress per rank of the file, from its first to its last progress line."""
    found: list[Fact] = []
    for rank, rows in streams(rows_of(record)).items():
        progress: LogProgress | None = None
        for row in rows:
            progress = _after(progress, row, rank, record)
        if progress is not None:
            found.append(progress)
    return found


def _after(known: LogProgress | None, row: Row, rank: int | None, record: Evidence) -> LogProgress | None:
    text = row.text
    done = _DONE.search(text) is not None and _NOT_DONE.search(text) is None
    told = step_in(text)
    if told is None and not done:
        return known
    step, of, epoch = told if told is not None else (None, None, None)
    if known is None:
        return LogProgress(
            (record.id,),
            record.cell,
            rank,
            step,
            of,
            epoch,
            row.at,
            row.place,
            done,
            step,
            row.place if told else None,
            row.at,
            row.seen_at,
            text.strip()[:200],
            () if step is None else ((row.place, step),),
        )
    main = told is None or known.of is None or of is None or of == known.of or of > known.of
    if not main:  # a shorter bar inside the training: its validation, or an epoch's own batches
        return replace(known, at=row.at, place=row.place)
    return replace(
        known,
        step=max(step, known.step or 0) if step is not None and (of is None or of == known.of) else (step if step is not None else known.step),
        of=of if of is not None else known.of,
        epoch=epoch if epoch is not None else known.epoch,
        at=row.at,
        place=row.place,
        finished=done or (known.finished and told is None),
        first_step=known.first_step if known.first_step is not None else step,
        first_place=known.first_place if known.first_place is not None else (row.place if told else None),
        seen_at=row.seen_at,
        line=text.strip()[:200],
        marks=known.marks if step is None else (*known.marks, (row.place, step))[-MARKS_CAP:],
    )


# `step 3`, `Step: 3/100`, `[120/1000]` behind such a word; `iteration       10/     500 |`; tqdm's `12/100 [00:03<…`; a Trainer's `'epoch': 0.5`.
_STEP = re.compile(
    r"\b(?:global[_ ]?step|steps?|iter(?:ation)?s?|it|batch|update|num_updates)\b[ \"']{0,3}[:=#]?[ ]{0,9}[\[(]?[ ]{0,9}(\d{1,9})(?:[ ]{0,9}(?:/|of)[ ]{0,9}(\d{1,9}))?(?![\d.]*[\d%])",
    re.IGNORECASE,
)
_TQDM = re.compile(r"(?<![\d.])(\d{1,9})/(\d{1,9}) \[\d{1,4}:\d\d")
_BRACKETS = re.compile(r"\[[ ]{0,6}(\d{1,9})[ ]{0,2}/[ ]{0,6}(\d{1,9})\]")
_EPOCH = re.compile(r"\bepoch['\"]?[ ]{0,2}[:=#\[]?[ ]{0,3}\[?(\d{1,5}(?:\.\d{1,4})?)", re.IGNORECASE)
_PLAN = re.compile(r"\b(?:total|max|num|number of|every|warm-?up|accumulation|planned|per|interval|for|will|shards?|loading|download)\b", re.IGNORECASE)
_TELLS = re.compile(r"(?i)step|iter|epoch|batch|update|\d/\d|\bit\b")


def step_in(text: str) -> tuple[int | None, int | None, float | None] | None:
    """(step, of how many, epoch) of a progress line, None where the line is none."""
    text = text[:1500]
    if not _TELLS.search(text) or (text.lstrip().startswith(("File ", "[Epoch", "Traceback")) and "/" not in text):
        return None
    if _SHARDS.search(text):
        return None
    bar = _TQDM.search(text)
    named = None if _PLAN.search(text) and bar is None else _STEP.search(text)
    epoch = _EPOCH.search(text)
    at = float(epoch.group(1)) if epoch is not None else None
    if bar is not None:
        return int(bar.group(1)), int(bar.group(2)), at
    if named is not None:
        return int(named.group(1)), int(named.group(2)) if named.group(2) else None, at
    boxed = _BRACKETS.search(text) if epoch is not None else None
    if boxed is not None:
        return int(boxed.group(1)), int(boxed.group(2)), at
    if epoch is not None and re.search(r"(?i)loss|lr|acc", text):
        return None, None, at
    return None


_SHARDS = re.compile(r"(?i)checkpoint shards|downloading|^map\b|^map \(|tokeni[sz]|fetching|generating|resolving|filter|saving|loading|running 0|sanity")


def join_log_jobs(facts: list[Fact]) -> list[Fact]:
    """One LogJob per attempt and one LogProgress per rank and attempt."""
    jobs: dict[str, list[LogJob]] = {}
    steps: dict[tuple[str, int | None], list[LogProgress]] = {}
    for fact in facts:
        if isinstance(fact, LogJob):
            jobs.setdefault(fact.cell, []).append(fact)
        elif isinstance(fact, LogProgress):
            steps.setdefault((fact.cell, fact.rank), []).append(fact)
    if not jobs:
        return facts
    rest = [fact for fact in facts if not isinstance(fact, (LogJob, LogProgress))]
    return [*rest, *(_one_job(parts, len(jobs)) for parts in jobs.values()), *(_one_progress(parts) for parts in steps.values())]


def _one_job(parts: list[LogJob], attempts: int) -> LogJob:
    ranks = sorted({rank for part in parts for rank in part.ranks})
    told = max((part.world_size for part in parts if part.world_size), default=None)
    size = max(told or 0, ranks[-1] + 1 if ranks else 0) or None
    last = max(parts, key=lambda part: part.last_place)
    firsts, lasts = [part.first_at for part in parts if part.first_at is not None], [part.last_at for part in parts if part.last_at is not None]
    order = [name for name, _ in _LAUNCHERS]
    return replace(
        last,
        evidence=tuple(dict.fromkeys(id_ for part in parts for id_ in part.evidence)),
        launcher=min((part.launcher for part in parts if part.launcher), key=order.index, default=""),
        world_size=size,
        attempts=attempts,
        files=tuple(dict.fromkeys(name for part in parts for name in part.files)),
        first_at=min(firsts, default=None),
        last_at=max(lasts, default=None),
        ends=all(part.ends for part in parts),
        lines=sum({part.files: part.lines for part in parts}.values()),
        ranks=tuple(ranks),
        hosts=tuple(dict.fromkeys(name for part in parts for name in part.hosts)),
        first_place=min(part.first_place for part in parts),
    )


def _one_progress(parts: list[LogProgress]) -> LogProgress:
    parts = sorted(parts, key=lambda part: part.place or 0)
    first, last = parts[0], parts[-1]
    told = [part for part in parts if part.step is not None]
    most = max(told, key=lambda part: (part.of or 0, part.step or 0), default=last)
    return replace(
        last,
        evidence=tuple(dict.fromkeys(id_ for part in parts for id_ in part.evidence)),
        step=most.step,
        of=most.of,
        epoch=max((part.epoch for part in parts if part.epoch is not None), default=None),
        finished=any(part.finished for part in parts),
        first_step=first.first_step,
        first_place=min((part.first_place for part in parts if part.first_place is not None), default=None),
        first_at=first.first_at,
        marks=tuple(mark for part in parts for mark in part.marks)[-MARKS_CAP:],
    )
