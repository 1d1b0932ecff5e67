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

RECORD_BYTES = 2**20
ROW_BYTES = 40
_OF_FILE = ("path", "bytes", "read_bytes", "compression", "lines", "cut_lines", "clock")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
HIDDEN = "<hidden:private-key>"
MOST_LINES = 200
TEXT = 4
RANK = 2
_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BODY = re.compile(r"[A-Za-z0-9+/]{8,80}={0,2}")
# OpenSSL, OpenSSH and MIME break lines at these widths: such a line belongs to a key or a
# certificate even where its beginning was not kept.
_WIDTHS = (64, 70, 76)


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
        hide_keys(cells)
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


def hide_keys(rows: list[list[Any]]) -> None:
    """Replace private keys in rows of log.extract, in place.

    A log prints a key line by line, and no line shows by itself what it is: so keys are hidden
    here, before each row is redacted. Other lines between those of a key stay.
    """
    inside: dict[Any, int] = {}
    for row in rows:
        rank, text = row[RANK], str(row[TEXT]).strip().strip("'\"")
        begins = _BEGINS.search(text)
        if begins is not None and _ENDS.search(text) is None:
            inside[rank] = MOST_LINES
            row[TEXT] = text[: begins.start()] + HIDDEN
        elif _ENDS.search(text) is not None and rank in inside:
            del inside[rank]
            row[TEXT] = HIDDEN
        elif _BODY.fullmatch(text) and (rank in inside or _random(text)):
            row[TEXT] = HIDDEN
        elif rank in inside:
            inside[rank] -= 1
            if inside[rank] <= 0:
                del inside[rank]


def _random(text: str) -> bool:
    """Whether the line is base64 as wide as the lines of a key."""
    return len(text) in _WIDTHS and all(
        any(test(sign) for sign in text) for test in (str.isupper, str.islower, str.isdigit)
    )
