"""Numbers of batches or samples that every rank prints of itself once: where they differ, the
ranks do not all make as many calls.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from trainprobe.facts.log_rows import Row, rows_of
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

TEXT = 200
COUNTS_CAP = 512  # of one file
LATER_S = 5.0
LEAST_BARE = 3  # ranks, where nothing says what is counted
_CALLS = r"(?:mini-?)?batch(?:es)|steps|iterations|iters"
_INPUTS = r"samples|examples|items|sequences|rows"
# One of them stands in each line that _COUNT matches, and in few others.
_COUNTED = ("batches", "steps", "iter", "samples", "examples", "items", "sequences", "rows", "len(")
_COUNT = re.compile(
    rf"(?i)\b(?:(?:num(?:ber)?[ _](?:of[ _])?)?(?P<name>{_CALLS}|{_INPUTS})"
    r"|len\((?P<length>[\w.]{1,40})\))\s{0,2}[:=]{1,2}\s{0,2}(?P<first>\d{1,9})\b(?![./%])"
    rf"|(?<![\d./])\b(?P<last>\d{{1,9}}) (?P<unit>{_CALLS}|{_INPUTS})\b"
)
_BARE = re.compile(
    r"(?i)^\W{0,4}rank[ _:]{0,2}(?P<rank>\d{1,6})\]?\s{0,2}[:=]\s{0,3}(?P<last>\d{1,9})$"
)
# tqdm's bar where it knows no length: `35batch [00:03, 10.54batch/s]`.
_OPEN_BAR = re.compile(
    r"(?P<last>\b\d{1,9}) ?(?P<unit>it|batch|step)(?:e?s)? \[(?P<clock>(?:\d{1,3}:){1,2}\d\d),"
)
_RANK = re.compile(r"(?i)\brank[ _:=#]{0,2}(\d{1,6})\b")
_DIGITS = re.compile(r"\d{1,20}")
_OF_CALLS = re.compile(rf"(?i)(?:{_CALLS}|\w*loader\w*)$")


@dataclass(frozen=True)
class RankCount(Fact):
    """`number` of what `line` says, with `form` the line without its numbers. `of_calls`: it counts
    batches or steps; samples may be unequal and the batches not. `ran_s` is how long a bar had run
    that stood there last; None for another line.
    """

    number: int = 0
    form: str = ""
    line: str = ""
    of_calls: bool = False
    bare: bool = False
    seen_at: str = ""
    ran_s: float | None = None

    @property
    def tells(self) -> bool:
        """Whether unequal counts are unequal numbers of calls."""
        return self.of_calls or self.bare


def parse_counts(record: Evidence) -> list[Fact]:
    """The counts that a rank prints once in a form, of one file, and where its bars stood last."""
    rows = rows_of(record)
    counts = [count for row in rows for count in _read(record, row)]
    times = Counter((count.rank, count.form) for count in counts)
    bars = [bar for row in rows if " [" in row.text for bar in _open_bar(record, row)]
    last = {(bar.rank, bar.form): bar for bar in bars}
    found: list[Fact] = [one for one in counts if times[one.rank, one.form] == 1]
    return [*found, *last.values()][:COUNTS_CAP]


def _read(record: Evidence, row: Row) -> Iterable[RankCount]:
    text = row.text.strip()[:TEXT]
    if not any(digit in text for digit in "0123456789"):
        return
    bare = _BARE.match(text)
    small = text.lower()
    counts = any(word in small for word in _COUNTED)
    match = bare or (_COUNT.search(text) if counts else None)
    if match is None:
        return
    groups = match.groupdict()
    named = _RANK.search(text)
    rank = int(named.group(1)) if named is not None else row.rank
    if rank is None:
        return
    what = groups.get("name") or groups.get("length") or groups.get("unit") or ""
    yield RankCount(
        (record.id,),
        record.cell,
        rank,
        number=int(groups.get("first") or groups["last"]),
        form=_DIGITS.sub("0", text),
        line=text,
        of_calls=_OF_CALLS.search(what) is not None,
        bare=bare is not None,
        seen_at=row.seen_at,
    )


def _open_bar(record: Evidence, row: Row) -> Iterable[RankCount]:
    text = row.text.strip()[:TEXT]
    bar, named = _OPEN_BAR.search(text), _RANK.search(text)
    rank = int(named[1]) if named is not None else row.rank
    if bar is None or rank is None:
        return
    name = text[: bar.start()]
    if named is not None and named.end() <= bar.start():
        name = name[: named.start()] + name[named.end() :]
    parts = [int(part) for part in reversed(bar["clock"].split(":"))]
    yield RankCount(
        (record.id,),
        record.cell,
        rank,
        number=int(bar["last"]),
        form=f"{name}[",
        line=text,
        of_calls=True,
        seen_at=row.seen_at,
        ran_s=float(sum(part * unit for part, unit in zip(parts, (1, 60, 3600), strict=False))),
    )


def _one_left_behind(counts: Iterable[RankCount]) -> bool:
    """Whether a bar that had run for longer stood at less: bars of one clock are only drawn at
    different times.
    """
    ran = [(one.number, one.ran_s) for one in counts if one.ran_s is not None]
    return not ran or any(
        number < other and ran_s > other_s + LATER_S
        for number, ran_s in ran
        for other, other_s in ran
    )


def counts_apart(counts: Iterable[RankCount]) -> tuple[RankCount, ...]:
    """One form's counts by rank, where they differ: those of calls first; empty where none do."""
    forms: dict[str, dict[int, RankCount]] = defaultdict(dict)
    for count in counts:
        if count.rank is not None:
            forms[count.form][count.rank] = count
    apart = [
        tuple(by_rank[rank] for rank in sorted(by_rank))
        for by_rank in forms.values()
        if len({one.number for one in by_rank.values()}) > 1
        and len(by_rank) >= (LEAST_BARE if any(one.bare for one in by_rank.values()) else 2)
        and _one_left_behind(by_rank.values())
    ]
    return min(apart, key=lambda group: not group[0].of_calls, default=())
