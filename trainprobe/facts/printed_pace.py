"""How fast a job says that it goes: the time or rate that its own lines tell of each step, at first
and now.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median

from trainprobe.model.facts import Fact

LEAST_LINES = 8  # of one form
LINES_CAP = 1000  # of the beginning and of the end
MOST_S = 1e9
MOST_LINES = 6  # of the beginning and of the end
DIGITS = 2
SLIP = 0.05  # of all that a clock tells
WARM_UP = 2  # the first steps compile, allocate and fill caches
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SECONDS = re.compile(r"\s?(ms|s|secs?|seconds?)(?![\w-])(?! ago)")
_TIME = re.compile(
    r"(?i)(?:\btime|_time|\bdt|\btook|step[ _]?s|sec(?:onds)?(?:/| per )\w+)(?:/\w+)?\W{0,3}$"
)
_RATE = re.compile(
    r"(?i)\s?(?:its?|steps?|iters?|iterations?|samples?|tok(?:en)?s?|im(?:a)?g(?:e)?s?|examples?|seqs?"
    r"|sequences?|batch(?:es)?|updates?|frames?)\s?/\s?s(?:ec)?\b"
)
_RATE_NAME = re.compile(r"(?i)(?:per[_ ]sec(?:ond)?|/s(?:ec)?|\btgs|\bips|throughput)\W{0,3}$")


@dataclass(frozen=True)
class PrintedPace(Fact):
    """How many times as long a step takes as before, by one column of its lines, with the words of
    a line of before and of now.
    """

    times: float = 1.0
    before: str = ""
    now: str = ""


def pace_of(lines: Iterable[str]) -> tuple[float, str, str] | None:
    """(how many times as long a step takes now, the words before, the words now) by lines that tell
    of a time or rate, of the form that most of them have; None where there are too few.
    """
    known = list(lines)
    known = known if len(known) <= 2 * LINES_CAP else [*known[:LINES_CAP], *known[-LINES_CAP:]]
    told = [line for line in known if len(line) < 1000 and _tells(line)]
    forms = Counter(_NUMBER.sub("#", line) for line in told)
    if not forms:
        return None
    form, count = forms.most_common(1)[0]
    if count < LEAST_LINES:
        return None
    same = [line for line in told if _NUMBER.sub("#", line) == form]
    slower = [found for column in _columns(same) if (found := _compared(column)) is not None]
    return max(slower, key=lambda found: found[0], default=None)


def _tells(line: str) -> bool:
    return any(_seconds(line, number) is not None for number in _NUMBER.finditer(line))


def _columns(lines: Sequence[str]) -> list[list[tuple[float, str]]]:
    """Of lines of one form: the columns that are seconds of a step, as (seconds, words). A rate
    stands as its inverse, a clock that only rises as its differences.
    """
    rows = [list(_NUMBER.finditer(line)) for line in lines]
    found = []
    for place in range(len(rows[0])):
        column = []
        for line, row in zip(lines, rows, strict=True):
            seconds = _seconds(line, row[place])
            if seconds is None:
                break
            column.append((seconds, _words(line, row[place])))
        if len(column) < len(lines):
            continue
        found.append(_between(column) if _is_clock(column) else column)
    return found


def _is_clock(column: Sequence[tuple[float, str]]) -> bool:
    """Does it only rise? Lines of several ranks may stand in another order than they were made."""
    values = [seconds for seconds, _ in column]
    slip = SLIP * (max(values) - min(values))
    return all(before - after <= slip for before, after in pairwise(values))


def _between(clock: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """The time from each line that is later than all before it to the next such line."""
    rising = dict.fromkeys(accumulate((seconds for seconds, _ in clock), max))
    return [
        (after - before, f"{after - before:.3g} s between two lines")
        for before, after in pairwise(rising)
    ]


def _seconds(line: str, number: re.Match[str]) -> float | None:
    value = float(number[0])
    if not 0 <= value < MOST_S:
        return None
    before, after = line[: number.start()][-24:], line[number.end() :][:24]
    if _RATE.match(after) or (_RATE_NAME.search(before) and not _SECONDS.match(after)):
        return 1 / value if value > 0 else None
    unit = _SECONDS.match(after)
    if unit is not None:
        return value / 1000 if unit[1] == "ms" else value
    return value if _TIME.search(before) else None


def _words(line: str, number: re.Match[str]) -> str:
    """The number with its name and unit, as it is printed."""
    name = re.search(r"(?:[A-Za-z_][\w/]*\W{1,2})?$", line[: number.start()][-30:])
    unit = re.match(r"\s?[\w/%]*(?: per \w+)?", line[number.end() :])
    return f"{name[0] if name else ''}{number[0]}{unit[0] if unit else ''}".strip(" ([,|")


def _compared(column: Sequence[tuple[float, str]]) -> tuple[float, str, str] | None:
    rows = column[WARM_UP:]
    if len(rows) < LEAST_LINES - WARM_UP - 1:
        return None
    part = min(max(2, len(rows) // 3), MOST_LINES)
    first, last = rows[:part], rows[-part:]
    before, now = median(row[0] for row in first), median(row[0] for row in last)
    if before <= 0:
        return None
    words = [_nearest(first, before), _nearest(last, now)]
    if any(len(re.sub(r"\D", "", one).lstrip("0")) < DIGITS for one in words):
        return None  # 0.1 s and 0.2 s may be nearly the same
    return now / before, words[0], words[1]


def _nearest(rows: Sequence[tuple[float, str]], seconds: float) -> str:
    return min(rows, key=lambda row: abs(row[0] - seconds))[1]
