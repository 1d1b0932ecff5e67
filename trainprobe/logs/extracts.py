"""Records what was read of logs: one `log.file` for each file, and its lines as `log.extract`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from trainprobe.case import Case
from trainprobe.logs.kinds import look_at_error_text
from trainprobe.logs.lines import Line
from trainprobe.logs.rank_assignment import RankAssignment
from trainprobe.logs.reading import Attempt, ReadFile
from trainprobe.logs.timeline import LAST, Timeline, split_at_restarts
from trainprobe.model.request import ExplainRequest
from trainprobe.redact import Redactor

RECORD_BYTES = 2**20
ROW_BYTES = 40
_OF_FILE = ("path", "bytes", "read_bytes", "compression", "lines", "cut_lines", "clock")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
RANK, TEXT = 2, 4


def write_extracts(
    case: Case, asked: ExplainRequest, read: Sequence[ReadFile], since: float | str | None
) -> None:
    split_at_restarts(read)
    assignment, timeline = RankAssignment(read), Timeline(read)
    moments = [moment for file in read for moment in file.moments]
    after = since if isinstance(since, float) else None
    if isinstance(since, str) and moments:
        after = max(moments) - _span(since)
    for number, file in enumerate(read):
        record_file(case, file)
        if file.content:
            look_at_error_text(case, file.path, file.content, cell=timeline.cell_of_path(file.path))
        for attempt in file.attempts:
            _write_attempt(
                case, file, number, attempt, assignment, timeline.cell(file, attempt), after
            )
    case.add(
        "log.request",
        cell=LAST,
        data={"since": after, "ranks": list(asked.ranks), "max_events": asked.max_events},
    )


def record_file(case: Case, file: ReadFile) -> None:
    """Record one `log.file`: how much of the file was read, and the times of its kept lines."""
    case.add(
        "log.file",
        cell=LAST,
        source=file.path,
        began=file.began,
        took_s=file.took_s,
        outcome=file.outcome,
        reason=file.reason,
        data={
            **{name: getattr(file, name) for name in _OF_FILE},
            "first_at": min(file.moments, default=None),
            "last_at": max(file.moments, default=None),
            "what": file.what or "unknown",
            "attempts": max(1, len(file.attempts)),
        },
    )


def _write_attempt(  # noqa: PLR0917 - one row needs all of it
    case: Case,
    file: ReadFile,
    number: int,
    attempt: Attempt,
    assignment: RankAssignment,
    cell: str,
    after: float | None,
) -> None:
    owner = assignment.of_file(file)
    last = file.lines if attempt is file.attempts[-1] else attempt.last
    for rows in _records(_since_then(attempt.rows, after if file.wall else None)):
        cells = [
            [
                *(line.number, line.at if file.wall else None, assignment.of_line(file, line)),
                *(line.host, line.text),
            ]
            for line in rows
        ]
        hide_over_lines(cells, case.redactor)
        data = {
            "path": file.path,
            "file": number,
            "rank": owner.rank,
            "rank_source": owner.source,
            "host": owner.host,
            "clock": file.clock,
            "rows": cells,
            "lines": last - attempt.begins + 1,
            "last_line": last,
            "has_end": file.outcome == "ok" and bool(rows) and rows[-1] is attempt.rows[-1],
        }
        case.add("log.extract", cell=cell, source=file.path, began=file.began, data=data)


def _since_then(rows: Iterable[Line], after: float | None) -> list[Line]:
    """The rows from a time on; a row without a stamp is as old as the last stamp before it."""
    kept: list[Line] = []
    clock: float | None = None
    for line in rows:
        clock = line.at if line.at is not None else clock
        if after is None or (clock is not None and clock >= after):
            kept.append(line)
    return kept


def _records(rows: Sequence[Line]) -> Iterable[list[Line]]:
    part: list[Line] = []
    size = 0
    for line in rows:
        size += ROW_BYTES + len(line.text)
        if part and size > RECORD_BYTES:
            yield part
            part, size = [], ROW_BYTES + len(line.text)
        part.append(line)
    yield part


def _span(text: str) -> float:
    return sum(
        float(number) * _SECONDS[unit] for number, unit in re.findall(r"([\d.]+)([smhd])", text)
    )


def hide_over_lines(rows: list[list[Any]], redactor: Redactor) -> None:
    """Replace secrets of several lines in rows of log.extract, in place: keys, values below their
    names, broken tokens. No line of these shows by itself what it is, so they are hidden here,
    before each row is redacted. Ranks write across each other; the lines of one belong together.
    """
    places: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row[RANK], []).append(place)
    for of_one in places.values():
        shown = redactor.lines([rows[place][TEXT] for place in of_one])
        for place, text in zip(of_one, shown, strict=True):
            rows[place][TEXT] = text
