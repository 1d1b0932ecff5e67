"""The lines that were kept of logs, as rows with a running clock: what every reader of
`log.extract` evidence begins with.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trainprobe.model import fields
from trainprobe.model.evidence import Evidence

# no file has more lines: terabytes; so `file * LINES_APART + line` orders all lines of all files
LINES_APART = 10**10
TEXT_CAP = 2000
_QUOTED = re.compile(r"(?:>|&gt;)[ ]?")
_NUMBERED = re.compile(r"[ ]{0,8}\d{1,7}(?:[:|\t][ ]?|[ ]\|[ ]?|[ ]{2}(?=\S))")
_NO_HOST = re.compile(r"(?:Error|Exception|Interrupt|Exit|Warning)$")
# What C++ writes of itself into the lines of torch: `[Rank 3] …`, `[PG 0 Rank 3] …`, `[PG ID 0 PG
# GUID 0(default_pg) Rank 3] …`.
# People write `[Rank 0/2/3]` where several said the same.
_OWN_RANK = re.compile(
    r"\[(?:PG (?:ID )?[^\]\n]{1,120}? )?[Rr]ank (\d{1,7})(?:[/,] ?\d{1,7}){0,63}\]"
)
# A watchdog's message that somebody broke into lines by hand, and how its next line begins; a
# terminal breaks it anywhere, also inside a word.
_WATCHDOG = re.compile(r"ollective operation timeout|Work[A-Z]\w{2,8}\(")
_GOES_ON = re.compile(r"\s{0,40}(?:Work[A-Z]\w{2,8}\(|[A-Z][A-Za-z]{1,20}(?:\(ms\))?=|ran for \d)")
_OPEN = re.compile(r"Work[A-Z]\w{2,8}\((?:[^()]|\(\w{1,9}\)){0,400}(?:\(\w{0,9})?$")
_BROKEN_INTO = 4  # lines


class Row(NamedTuple):
    """One kept line. `at` is its own or the last stamp before it in the file, Unix seconds, None
    where there was none; `place` orders all lines.
    """

    line: int
    at: float | None
    rank: int | None
    host: str
    text: str
    place: int
    path: str

    @property
    def seen_at(self) -> str:
        """`rank3.err:118`."""
        return f"{self.path.replace(chr(92), '/').rsplit('/', 1)[-1]}:{self.line}"


_last_read: list[tuple[Evidence, list[Row]]] = []


def rows_of(record: Evidence) -> list[Row]:
    """Return the rows of one `log.extract`, in line order; bad ones are left out. Several
    readers ask for the same record one after another.
    """
    known = next(iter(_last_read), None)
    if known is None or known[0] is not record:
        known = (record, _rows_of(record))
        _last_read[:] = [known]
    return known[1]


def _rows_of(record: Evidence) -> list[Row]:
    data = record.data
    path, file = fields.text(data, "path"), fields.whole(data, "file") or 0
    whose, host = fields.whole(data, "rank"), fields.text(data, "host")
    rows: list[Row] = []
    clock: float | None = None
    for cells in fields.items(data, "rows"):
        if not isinstance(cells, (list, tuple)) or len(cells) < 5 or not isinstance(cells[4], str):
            continue
        number, at, rank, on, text = cells[:5]
        line = (
            number
            if isinstance(number, int) and 0 <= number < LINES_APART
            else (rows[-1].line + 1 if rows else 0)
        )
        if isinstance(at, (int, float)) and not isinstance(at, bool) and 0 < at < 1e11:
            clock = (
                max(clock, float(at)) if clock is not None and abs(at - clock) < 3600 else float(at)
            )
        on = on if isinstance(on, str) else ""
        if _NO_HOST.search(on):  # `ValueError: …` behind a host's prefix is no second host
            on, text = "", f"{on}: {text}"
        own = (
            rank
            if isinstance(rank, int) and not isinstance(rank, bool) and 0 <= rank < 1_000_000
            else whose
        )
        rows.append(
            Row(line, clock, own, on or host, text[:TEXT_CAP], file * LINES_APART + line, path)
        )
    return _with_own_ranks(_made_whole(_unquoted(rows)))


def _unquoted(rows: list[Row]) -> list[Row]:
    """A text that was pasted may carry `> ` or its line numbers before every line."""
    for mark in (_QUOTED, _NUMBERED):
        told = [row for row in rows if row.text.strip()]
        if (
            len(told) >= 2
            and sum(mark.match(row.text) is not None for row in told) >= 0.9 * len(told)
            and _counts_up(mark, told)
        ):
            rows = [row._replace(text=mark.sub("", row.text, count=1)) for row in rows]
    return rows


def _counts_up(mark: re.Pattern[str], rows: Sequence[Row]) -> bool:
    """Numbers before lines are line numbers only where each is larger than the one before."""
    if mark is not _NUMBERED:
        return True
    numbers = [
        int(re.sub(r"\D", "", match.group(0)) or 0)
        for row in rows
        if (match := mark.match(row.text)) is not None
    ]
    return all(low < high for low, high in itertools.pairwise(numbers))


def _made_whole(rows: list[Row]) -> list[Row]:
    """A watchdog's message in several lines is one row, where its first line stands."""
    found: list[Row] = []
    left = 0
    for row in rows:
        before = found[-1].text.rstrip() if found and left else ""
        if before and row.rank in (None, found[-1].rank):
            cut = row.text[:1].strip() != "" and _OPEN.search(before) is not None
            if cut or _GOES_ON.match(row.text):
                whole = f"{before}{'' if cut else ' '}{row.text.strip()}"
                found[-1] = found[-1]._replace(text=whole[:TEXT_CAP])
                left -= 1
                continue
        found.append(row)
        told = "operation timeout" in row.text or "Work" in row.text
        left = _BROKEN_INTO if told and _WATCHDOG.search(row.text) else 0
    return found


def _with_own_ranks(rows: list[Row]) -> list[Row]:
    named = [
        (
            row._replace(rank=int(match.group(1)))
            if row.rank is None
            and "ank " in row.text[:400]
            and (match := _OWN_RANK.search(row.text[:400]))
            else row
        )
        for row in rows
    ]
    # libstdc++ names the type first, and what it says, with the rank, on the next line.
    for number, (row, then) in enumerate(itertools.pairwise(named)):
        if (
            row.rank is None
            and then.rank is not None
            and row.text.startswith("terminate called after")
            and then.text.lstrip().startswith("what():")
        ):
            named[number] = row._replace(rank=then.rank)
    return named


def streams(rows: Iterable[Row]) -> dict[int | None, list[Row]]:
    """The rows of each rank apart; None holds those that name none. Order within a rank is kept."""
    found: dict[int | None, list[Row]] = {}
    for row in rows:
        found.setdefault(row.rank, []).append(row)
    return found
