"""What logs say of the job as a whole, and how far each rank came by what it printed."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from trainprobe.facts.log_rows import Row, rows_of, streams
from trainprobe.logtext.steps import read_step
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.signatures.required_literals import required_literals

MOST_RANKS = 100_000
MARKS_CAP = 40
OTHER_WORK = frozenset({"eval", "save", "load", "data", "compile"})


@dataclass(frozen=True)
class LogJob(Fact):
    """One attempt of a job as its logs tell of it.

    `world_size` is None where nothing tells; `launcher` is torchrun, slurm, deepspeed …
    `files` are the files read, `attempts` how many there were in all, `first_at` and `last_at` Unix
    seconds. `ends` is true where the files' own last lines were read, `lines` how many lines they
    have. `last_place` orders their last line, `last_seen_at` names it.
    `max_events` is how many events the report was asked to show.
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
    max_events: int | None = None


@dataclass(frozen=True)
class LogProgress(Fact):
    """The last progress that one rank printed: `step` of how many (`of`, None where not told),
    `epoch`, and when. `finished` marks the line that says that training completed.

    `marks` are (place, step) of the last lines that told a step. `first_step`, `first_place` and
    `first_at` are those of the first progress line; `place` that of the last one. `seen_at` is its
    file and line.
    `doing` is what the last line was about (train, eval, save, load, data, compile: logtext.steps),
    `doing_line` the last line of work other than training, such as a bar of the tokenizer, and
    `doing_seen_at` where it stands. `nothing_line` says that there was nothing to do.
    `pressed_at` is where the terminal shows a Ctrl-C behind the line that says that it completed.
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
    of_epochs: int | None = None
    doing: str = ""
    doing_line: str = ""
    doing_seen_at: str = ""
    finished_line: str = ""
    nothing_line: str = ""
    pressed_at: str = ""

    @property
    def worked(self) -> bool:
        """Does transformers' summary at the end tell of a training that made steps? One that finds
        all of them made ends at once.
        """
        told = _SUMMARY.search(self.finished_line)
        return told is not None and float(told[1]) >= _AT_ONCE_S and float(told[2]) > 0


_AT_ONCE_S = 1.0
_SUMMARY = re.compile(
    r"'train_runtime': '?(\d{1,9}\.\d{1,9}).{0,200}'train_steps_per_second': '?(\d{1,9}\.\d{1,9})"
)
_WORLD = re.compile(
    r"\bworld[ _]?size['\"]?[ ]{0,2}[:=)]{1,2}[ ]{0,2}(\d{1,6})\b|\bnranks"
    r" (\d{1,6})\b|\bWORLD_SIZE=(\d{1,6})\b|--world[-_]size[= ](\d{1,6})\b"
    r"|\bMEMBER: \d{1,6}/(\d{1,6})\b|\bwith (\d{1,6}) processes\b|\bSLURM_NTASKS=(\d{1,6})\b",
    re.IGNORECASE,
)
_LAUNCHERS = (
    (
        "torchrun",
        re.compile(
            r"torch[./]distributed[./](?:run|elastic(?![./]multiprocessing[./]errors)|launcher)"
            r"|\btorchrun\b|ChildFailedError"
            r"|torchelastic"
        ),
    ),
    ("deepspeed", re.compile(r"\[launch\.py:\d|\[runner\.py:\d|deepspeed[./]launcher")),
    ("accelerate", re.compile(r"accelerate[./]commands[./]launch|\baccelerate launch\b")),
    (
        "lightning",
        re.compile(
            r"(?:pytorch_)?lightning[./](?:pytorch[./])?(?:trainer|strategies|fabric)"
            r"|distributed_backend="
        ),
    ),
    ("ray", re.compile(r"\bray::|ray[./](?:train|tune)[./]|\(raylet\)")),
    ("mpirun", re.compile(r"\bmpirun\b|\bmpiexec\b|ORTE|PRTE")),
    ("slurm", re.compile(r"\bsrun: |\bslurmstepd(?:-[\w.-]{1,80})?: |SLURM_JOB_ID")),
    ("spawn", re.compile(r"torch[./]multiprocessing[./]spawn")),
)
# That the job as a whole went well; what says that the training did is logtext.steps' business.
_DONE = re.compile(
    r"(?i)^\W{0,4}all done\b|\bjob (?:completed|finished|succeeded)\b|\bfinished"
    r" successfully\b|\bsuccessfully"
    r" (?:finished|completed)\b|^(?:done|finished|completed|succeeded)\W{0,3}$"
    r"|^\W{0,6}(?:done|finished|completed)\b.{0,40}\d"
    r" (?:steps|epochs|iterations|updates)\b|\"(?:event|status|state|msg|message)\":"
    r" ?\"(?:finished|completed|done|succeeded)\""
    r"|^\W{0,4}Best (?:metric|score|accuracy)\b.{0,40}epoch"
    r"|\b(?:exit(?:ed)?|finished|completed) (?:with )?(?:exit )?(?:code|status)["
    r" :=]{1,2}0\b|^Succeeded$|\bJob \S{1,60} (?:is )?(?:succeeded|completed)\b"
)
# One of them stands in each line that _DONE matches, and in few others.
_ENDS = ("done", "finished", "completed", "succe", "exit", "best ")
NOTHING = re.compile(
    r"(?i)No training batches|\b0 (?:training"
    r" )?(?:steps|iterations|batches|updates|samples|examples)\b|\bno (?:steps|batches)\b"
)
_NOT_DONE = re.compile(r"(?i)\b(?:not|n't|before|until|when|if|unless)\b")


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


def parse_log_file(record: Evidence) -> list[Fact]:
    """A file that was read, also one of which no line was kept."""
    path = fields.text(record.data, "path")
    lines = fields.whole(record.data, "lines") or 0
    times = [fields.number(record.data, "first_at"), fields.number(record.data, "last_at")]
    return [
        LogJob(
            (record.id,),
            record.cell,
            files=(path,) if path else (),
            first_at=times[0],
            last_at=times[1],
            lines=lines,
            ends=record.outcome == "ok",
        )
    ]


def parse_log_request(record: Evidence) -> list[Fact]:
    """What was asked of the reading of logs."""
    return [LogJob((record.id,), record.cell, max_events=fields.whole(record.data, "max_events"))]


# All that its ranks put into a gather comes out: the group has as many as the sizes differ by.
_GATHERED = re.compile(
    r"OpType=_?(?:ALLGATHER|REDUCE_SCATTER)(?:_BASE)?, NumelIn=(\d{1,15}), NumelOut=(\d{1,15})"
)


def _launcher(rows: Iterable[Row]) -> str:
    texts = [row.text[:600] for row in rows]
    whole = "\n".join(texts)
    return next(
        (
            name
            for name, pattern in _LAUNCHERS
            if any(word in whole for word in required_literals(pattern.pattern))
            and any(map(pattern.search, texts))
        ),
        "",
    )


def _world(rows: Iterable[Row]) -> int | None:
    """The largest world that is told of: sub-groups have worlds of their own."""
    told = []
    for row in rows:
        text = row.text[:1000]
        if (
            "nranks" in text
            or "orld" in text
            or "WORLD" in text
            or "MEMBER" in text
            or "processes" in text
            or "NTASKS" in text
        ):
            told += [
                int(number)
                for match in _WORLD.finditer(text)
                for number in match.groups()
                if number
            ]
        told += [
            max(sizes) // min(sizes)
            for match in (_GATHERED.finditer(text) if "NumelOut=" in text else ())
            if min(sizes := sorted(map(int, match.groups()))) and not max(sizes) % min(sizes)
        ]
    return max((size for size in told if 1 <= size <= MOST_RANKS), default=None)


def parse_log_progress(record: Evidence) -> list[Fact]:
    """One LogProgress per rank of the file, from its first to its last progress line."""
    found: list[Fact] = []
    for rank, rows in streams(rows_of(record)).items():
        seen = _Seen()
        for row in rows:
            seen.read(row)
        if seen.last is not None:
            found.append(seen.fact(record, rank))
    return found


class _Seen:
    """What the progress lines of one rank tell, line by line."""

    def __init__(self) -> None:
        self.first: Row | None = None
        self.last: Row | None = None
        self.line: Row | None = None
        self.stepped: Row | None = None
        self.work: Row | None = None
        self.step: int | None = None
        self.first_step: int | None = None
        self.of: int | None = None
        self.epoch: float | None = None
        self.of_epochs: int | None = None
        self.doing = ""
        self.finished = False
        self.finished_line = ""
        self.nothing_line = ""
        self.pressed_at = ""
        self.marks: deque[tuple[int, int]] = deque(maxlen=MARKS_CAP)

    def read(self, row: Row) -> None:
        if self.finished and row.text.lstrip().startswith("^C"):
            self.pressed_at = row.seen_at
        if " 0 " in f" {row.text[:400]} " or "No training batches" in row.text:
            self.nothing_line = self.nothing_line or (
                row.text.strip()[:200] if NOTHING.search(row.text[:400]) else ""
            )
        told = read_step(row.text)
        done = (told is not None and told.finished) or _is_done(row.text[:400])
        if told is None and not done:
            return
        self.first, self.last = self.first or row, row
        if told is not None and told.kind in OTHER_WORK and not done:
            self.doing, self.work = told.kind, row
            return
        self.line = row
        if done:
            self.finished, self.finished_line = True, row.text.strip()[:200]
            if told is not None and told.step is not None and told.of == told.step:
                self.step = self.of = (
                    told.step
                )  # the plan that was reached, where the bar's was another
                return
        elif told is not None and told.step is not None and told.step > (self.step or 0):
            self.finished = False  # what had finished was not the whole training
        if told is not None:
            self.epoch = told.epoch if told.epoch is not None else self.epoch
            self.of_epochs = told.of_epochs if told.of_epochs is not None else self.of_epochs
            if (
                told.step is not None
                and told.kind not in OTHER_WORK
                and not (self.of is not None and told.of is not None and told.of < self.of)
            ):
                self._step(
                    told.step, told.of, row
                )  # a shorter bar inside the training is none of its steps

    def _step(self, step: int, of: int | None, row: Row) -> None:
        self.step = max(step, self.step or 0) if of is None or of == self.of else step
        self.of = of if of is not None else self.of
        if self.first_step is None:
            self.first_step, self.stepped = step, row
        self.doing = "train"
        self.marks.append((row.place, step))

    def fact(self, record: Evidence, rank: int | None) -> LogProgress:
        line, work = self.line or self.last, self.work
        return LogProgress(
            evidence=(record.id,),
            cell=record.cell,
            rank=rank,
            step=self.step,
            of=self.of,
            epoch=self.epoch,
            at=self.last.at if self.last else None,
            place=self.last.place if self.last else None,
            finished=self.finished,
            first_step=self.first_step,
            first_place=self.stepped.place if self.stepped else None,
            first_at=self.first.at if self.first else None,
            seen_at=line.seen_at if line else "",
            line=line.text.strip()[:200] if line else "",
            marks=tuple(self.marks),
            of_epochs=self.of_epochs,
            doing=self.doing,
            doing_line=work.text.strip()[:200] if work else "",
            doing_seen_at=work.seen_at if work else "",
            finished_line=self.finished_line,
            nothing_line=self.nothing_line,
            pressed_at=self.pressed_at,
        )


def _is_done(text: str) -> bool:
    small = text.lower()
    return (
        any(word in small for word in _ENDS)
        and _DONE.search(text) is not None
        and _NOT_DONE.search(text) is None
    )


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
    made = [_one_job(parts, len(jobs)) for parts in jobs.values()]
    # an attempt that failed early may not have named every rank
    size = max((job.world_size or 0 for job in made), default=0) or None
    return [
        *rest,
        *(replace(job, world_size=size) for job in made),
        *(_one_progress(parts) for parts in steps.values()),
    ]


def _one_job(parts: list[LogJob], attempts: int) -> LogJob:
    ranks = sorted({rank for part in parts for rank in part.ranks})
    told = max((part.world_size for part in parts if part.world_size), default=None)
    size = max(told or 0, ranks[-1] + 1 if ranks else 0) or None
    last = max(parts, key=lambda part: part.last_place)
    firsts, lasts = (
        [part.first_at for part in parts if part.first_at is not None],
        [part.last_at for part in parts if part.last_at is not None],
    )
    order = [name for name, _ in _LAUNCHERS]
    return replace(
        last,
        evidence=tuple(dict.fromkeys(id_ for part in parts for id_ in part.evidence)),
        launcher=min(
            (part.launcher for part in parts if part.launcher), key=order.index, default=""
        ),
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
        max_events=next((part.max_events for part in parts if part.max_events), None),
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
        of_epochs=max(
            (part.of_epochs for part in parts if part.of_epochs is not None), default=None
        ),
        finished=any(part.finished for part in parts),
        finished_line=next((part.finished_line for part in parts if part.finished), ""),
        nothing_line=next((part.nothing_line for part in parts if part.nothing_line), ""),
        first_step=first.first_step,
        first_place=min(
            (part.first_place for part in parts if part.first_place is not None), default=None
        ),
        first_at=first.first_at,
        marks=tuple(mark for part in parts for mark in part.marks)[-MARKS_CAP:],
    )
