"""Work that takes a while, as logs tell of it: bars with their clocks, and announcements such as
"Saving model checkpoint to …".

A bar tells three things that its number of steps does not: for how long it had run, how long it
would still take, and, where it goes back while its clock goes on, that several ranks write it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainprobe.facts.log_rows import Row, rows_of, streams
from trainprobe.logtext.steps import Bar, kind_of, read_bar, read_step
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

TEXT = 200
_DIGITS = re.compile(r"\d{1,20}")
BARS_CAP = 64  # different bars of one rank in one file
LEAST_APART = 2  # steps by which two ranks' bars must differ: one apart is the rule
LEAST_APART_S = 5.0  # and what these steps take
# The beginning of a sentence: behind nothing, or behind the head of a log line.
_ANNOUNCES = re.compile(
    r"(?:^|[:\]|>*=-][ *]{0,4}|\bINFO ?)(?P<what>(?:Sav|Writ|Evaluat|Validat|Merg|Consolidat|Export"
    r"|Upload|Download|Convert|Tokeni[sz]|Pre-?process|Prepar|Generat|Index|Scann|Cach|Build|Pack"
    r"|Extract|Comput|Calculat|Cluster|Collect|Process|Load|Pars|Read|Creat|Shuffl|Filter|Runn)ing"
    r" [^\n]{3,190}?)(?:\.{2,3}|…|\.)?$",
    re.IGNORECASE,
)
_OF_TOTAL = re.compile(r"(?<![\d./-])(\d{1,9}) ?(?:/|of) ?(\d{1,9})(?![\d./-])")
COUNTED_CHARACTERS = 400
COUNTED_LINES = 3  # alike but for a number that rises
_SAVES = re.compile(r"(?:sav|writ|merg|consolidat|export|upload)", re.IGNORECASE)
_EVALUATES = re.compile(r"(?:evaluat|validat)", re.IGNORECASE)
_ENDED = re.compile(
    r"(?i)\b(?:saved|done|finished|complete[d]?|took|loaded|built|written|merged|uploaded)\b"
)


@dataclass(frozen=True)
class LogWork(Fact):
    """One bar, one count (`is_count`), or one announcement, of one rank of a log.

    `kind` is train, eval, save, load, data, compile or unknown (logtext.steps). `step` of `of` as
    the bar stood last, `ran_s` for how long it had run then and `left_s` for how long it would
    still take by its own rate; None for an announcement. `begun_at` is the clock of its first line
    (Unix seconds), `first_place` where that stands, `place` and `seen_at` where its last one does.
    `ahead` is (step, ran_s) of an earlier line of this bar that stood further on than a later one:
    then several ranks write it, and they are not at one step.
    `ended`: it is full, or a later line of the rank says that it is done.
    """

    kind: str = "unknown"
    step: int | None = None
    of: int | None = None
    ran_s: float | None = None
    left_s: float | None = None
    begun_at: float | None = None
    at: float | None = None
    first_place: int = 0
    place: int = 0
    seen_at: str = ""
    line: str = ""
    ahead: tuple[int, float] | None = None
    ended: bool = False

    @property
    def is_bar(self) -> bool:
        return self.ran_s is not None

    @property
    def is_count(self) -> bool:
        """Is it told by lines of its own, of which each has the next number of a total?"""
        return self.ran_s is None and self.of is not None

    @property
    def needs_s(self) -> float | None:
        """How long the whole bar takes by its own rate."""
        return None if self.ran_s is None or self.left_s is None else self.ran_s + self.left_s


def parse_log_work(record: Evidence) -> list[Fact]:
    """The bars and announcements of each rank of one file."""
    found: list[Fact] = []
    for rank, rows in streams(rows_of(record)).items():
        found += _of_rank(record, rank, rows)
    return found


def _of_rank(record: Evidence, rank: int | None, rows: Sequence[Row]) -> list[Fact]:
    bars: dict[tuple[str, int | None], LogWork] = {}
    furthest: dict[tuple[str, int | None], tuple[int, float]] = {}
    announced: LogWork | None = None
    counted: dict[tuple[str, int], tuple[int, LogWork]] = {}
    for row in rows:
        bar = read_bar(row.text)
        if bar is not None and bar.ran_s is not None:
            key = (_DIGITS.sub("0", bar.name)[-60:], bar.of)
            known = bars.get(key)
            if known is None and len(bars) >= BARS_CAP:
                continue
            if known is not None and (known.ended or bar.ran_s < (known.ran_s or 0) / 2):
                known = None  # it began anew
                furthest.pop(key, None)
            far = furthest.get(key)
            behind = _behind(far, bar) or (known.ahead if known is not None else None)
            if far is None or bar.step >= far[0]:
                furthest[key] = (bar.step, bar.ran_s)
            bars[key] = replace(
                _work(record, rank, row),
                kind=bar.kind,
                step=bar.step,
                of=bar.of,
                ran_s=bar.ran_s,
                left_s=bar.left_s,
                begun_at=known.begun_at if known is not None else row.at,
                first_place=known.first_place if known is not None else row.place,
                ahead=behind,
                ended=bar.of is not None and bar.step >= bar.of,
            )
            continue
        text = row.text[:TEXT].strip()
        _count(counted, record, rank, row)
        match = _ANNOUNCES.search(text) if "ing " in text else None
        if match is not None and not _counts(text):
            announced = replace(_work(record, rank, row), kind=_kind(match["what"]))
        elif announced is not None and (_ENDED.search(text) or _counts(text)):
            announced = replace(announced, ended=True)
    told = [work for times, work in counted.values() if times >= COUNTED_LINES]
    return [*bars.values(), *told, *((announced,) if announced is not None else ())]


def _count(
    counted: dict[tuple[str, int], tuple[int, LogWork]],
    record: Evidence,
    rank: int | None,
    row: Row,
) -> None:
    """Lines that are alike but for a number that rises, of a total that stays: work that goes on,
    whatever it is called.
    """
    text = row.text[:COUNTED_CHARACTERS]
    match = _OF_TOTAL.search(text) if "/" in text or " of " in text else None
    if match is None:
        return
    step, of = int(match[1]), int(match[2])
    key = (_DIGITS.sub("0", text[max(0, match.start() - 60) : match.start()]), of)
    times, known = counted.get(key, (0, None))
    if step > of or (known is None and len(counted) >= BARS_CAP):
        return
    if known is not None and step <= (known.step or 0):
        times, known = 0, None
    work = replace(_work(record, rank, row), kind=kind_of(text), step=step, of=of, ended=step >= of)
    if known is not None:
        work = replace(work, begun_at=known.begun_at, first_place=known.first_place)
    counted[key] = (times + 1, work)


def _kind(what: str) -> str:
    """By the usual phrases, else by the verb alone."""
    found = kind_of(what)
    if found not in ("unknown", "train"):
        return found
    return "save" if _SAVES.match(what) else "eval" if _EVALUATES.match(what) else "data"


def _work(record: Evidence, rank: int | None, row: Row) -> LogWork:
    return LogWork(
        (record.id,),
        record.cell,
        rank,
        begun_at=row.at,
        at=row.at,
        first_place=row.place,
        place=row.place,
        seen_at=row.seen_at,
        line=row.text.strip()[:TEXT],
    )


def _counts(text: str) -> bool:
    """Does it tell of a step of the training?"""
    told = read_step(text)
    return told is not None and told.step is not None


def _behind(far: tuple[int, float] | None, bar: Bar) -> tuple[int, float] | None:
    """Where another rank's bar must have stood, since this one stands lower at a later time."""
    if far is None or bar.ran_s is None or bar.ran_s < far[1] or bar.step <= 0:
        return None
    apart = far[0] - bar.step
    return far if apart >= LEAST_APART and apart * bar.ran_s / bar.step >= LEAST_APART_S else None
