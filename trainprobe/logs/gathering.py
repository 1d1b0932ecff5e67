"""One case out of many files: dumps and stack dumps as ever, and everything that is text as what it tells."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Callable, Iterable, Sequence

from trainprobe.case import Case
from trainprobe.collect.inputs import Saved, find_saved, look_at_saved
from trainprobe.errors import UsageError
from trainprobe.logs.attempts import LAST, Timeline, split_at_restarts
from trainprobe.logs.engine import SLOW, engine, is_fast
from trainprobe.logs.finding import NAME, STDIN, Found
from trainprobe.logs.given import look_at_given
from trainprobe.logs.interrupts import first_interrupt_asks
from trainprobe.logs.keys import hide_keys
from trainprobe.logs.kinds import look_at_error_text
from trainprobe.logs.lines import Line
from trainprobe.logs.pace import Pace
from trainprobe.logs.packed_dumps import PackedDumps
from trainprobe.logs.reading import Attempt, ReadFile, read_file
from trainprobe.logs.scanning import WHOLE_LINES
from trainprobe.logs.speaking import Speakers
from trainprobe.model.progress import Progress
from trainprobe.model.request import ExplainRequest
from trainprobe.saved_case import read_case

MOST_NAMED = 10
RECORD_BYTES = 2**20
ROW_BYTES = 40
# Over all files together, since each row kept costs some 0.2 ms until it is judged; each may have its share, and what others leave.
ROWS_IN_ALL = 40_000
LEAST_ROWS = 60
# Error files wait in memory until all attempts are known; of more than this, each goes to the last attempt.
WAITING_BYTES = 64 * 2**20
_NOTHING = ("", "empty")
FILE_S = 1800.0
WHOLE_S = 3600.0
_SPAN = re.compile(r"(?:\d{1,9}(?:\.\d{1,3})?[smhd]){1,4}")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def gather(case: Case, asked: ExplainRequest, found: Found, progress: Progress) -> None:
    """Write everything that was found into `case`, and what the reader of the report must know of it: what was not understood or left out.

    Ctrl-C ends the reading; what was read until then is written. Raises UsageError where nothing of it can be judged.
    """
    since = _since(asked.since)
    for says in found.unread:
        _not_read(case, says)
    found.cases[:] = _kept_cases(case, found.cases, alone=not found.files)
    look_at_given(case, asked.env_files, asked.nodes, asked.gpus)
    saved = find_saved(found.files)
    with PackedDumps() as packed:
        _gather_files(case, asked, found, saved, packed, progress, since)


def _kept_cases(case: Case, folders: Sequence[str], *, alone: bool) -> list[str]:
    """Keep the evidence of earlier cases; return those that could be read."""
    kept: list[str] = []
    for folder in folders:
        try:
            earlier = read_case(folder)
        except UsageError as error:
            if alone and folder == folders[-1] and not kept:
                raise
            _not_read(case, error.says)
            continue
        kept.append(folder)
        for record in earlier.evidence:
            case.keep(record)
        for damage in earlier.damage:
            _not_read(case, f"{folder}: {damage}")
    return kept


def _not_read(case: Case, says: str) -> None:
    case.add("input", cell=LAST, outcome="unavailable", reason=says)


def _gather_files(  # noqa: PLR0917 - one look needs all of it
    case: Case, asked: ExplainRequest, found: Found, saved: Saved, packed: PackedDumps, progress: Progress, since: float | str | None
) -> None:
    trouble = [*found.left_out, *([SLOW] if saved.rest and not is_fast() else ())]
    read: list[ReadFile] = []
    why_unread = "no time was left"
    try:
        _read_all(case, saved.rest, asked, read, progress, packed)
    except KeyboardInterrupt:
        why_unread = "the reading was interrupted"
        if not (found.cases or saved.dumps or saved.stacks or any(file.what not in _NOTHING for file in read)):
            raise
        case.add("interrupted", cell=LAST, data={"cell": LAST, "phase": "reading"})
    saved.dumps.extend(packed.saved.dumps)
    saved.stacks.extend(packed.saved.stacks)
    if saved.dumps or saved.stacks:
        look_at_saved(case, saved, packed.shown)
    nothing = [file for file in read if not file.what]
    unread = saved.rest[len(read) :]
    if unread:
        trouble.append(f"Not read, since {why_unread}: {len(unread)} of {len(saved.rest)} files.")
    if not (found.cases or saved.dumps or saved.stacks or len(nothing) < len(read)):
        raise UsageError(f"Nothing in {', '.join(asked.paths[:3])} is a log, a dump or a case: {_named(nothing) or 'it is empty'}.", NAME)
    if read:
        _write(case, asked, read, since)
    for path in unread:
        _write_file(case, ReadFile(path, what="log", outcome="partial", reason=f"nothing of it was read: {why_unread}"))
    if nothing:
        trouble.append(f"Not understood: {_named(nothing)}.")
    partly = [file for file in read if file.what and file.outcome != "ok"]
    if partly:
        trouble.append(f"Not read wholly: {_named(partly)}.")
    if trouble:
        case.add("log.trouble", cell=LAST, data={"says": trouble})


def _named(files: Sequence[ReadFile]) -> str:
    shown = "; ".join(f"{file.path} ({file.reason.removeprefix('it ') or 'nothing in it is known'})" for file in files[:MOST_NAMED])
    return shown + (f" and {len(files) - MOST_NAMED} more" if len(files) > MOST_NAMED else "")


def _read_all(case: Case, paths: Sequence[str], asked: ExplainRequest, read: list[ReadFile], progress: Progress, packed: PackedDumps) -> None:
    ends = time.monotonic() + (asked.timeout_s or WHOLE_S)
    if paths:
        engine()  # built once; what it costs is no time of reading
    pace = Pace(paths, progress)
    left, waiting = ROWS_IN_ALL, 0
    try:
        with first_interrupt_asks() as stopped:
            for place, path in enumerate(paths):
                if place and time.monotonic() > ends:
                    return
                read.append(_read_one(case, path, ends, left // max(1, len(paths) - place), pace, stopped, packed))
                pace.done(read[-1].bytes or read[-1].read_bytes)
                waiting += len(read[-1].content)
                if read[-1].content and waiting > WAITING_BYTES:
                    look_at_error_text(case, path, read[-1].content, cell=LAST)
                    read[-1].content = b""
                left = max(0, left - sum(len(attempt.rows) for attempt in read[-1].attempts))
                if stopped():
                    raise KeyboardInterrupt
    finally:
        pace.over()


def _read_one(case: Case, path: str, ends: float, share: int, pace: Pace, stopped: Callable[[], bool], packed: PackedDumps) -> ReadFile:  # noqa: PLR0917 - as above
    """A long file of a few must not take what many short ones need, and none gets less than its beginning and end."""
    cap = max(LEAST_ROWS, min(WHOLE_LINES, share))
    return read_file(case, path, LAST, ends if path == STDIN else min(ends, time.monotonic() + FILE_S), cap, pace, stopped, packed)


def _write(case: Case, asked: ExplainRequest, read: Sequence[ReadFile], since: float | str | None) -> None:
    split_at_restarts(read)
    speakers, timeline = Speakers(read), Timeline(read)
    moments = [line.at for file in read if file.wall for attempt in file.attempts for line in attempt.rows if line.at is not None]
    after = since if isinstance(since, float) else max(moments, default=0.0) - _span(since) if since and moments else None
    for number, file in enumerate(read):
        _write_file(case, file)
        if file.content:
            look_at_error_text(case, file.path, file.content, cell=timeline.cell_of_path(file.path))
        for attempt in file.attempts:
            _write_attempt(case, file, number, attempt, speakers, timeline.cell(file, attempt), after)
    case.add("log.request", cell=LAST, data={"since": after, "ranks": list(asked.ranks), "max_events": asked.max_events})


def _write_file(case: Case, file: ReadFile) -> None:
    moments = [line.at for attempt in file.attempts for line in attempt.rows if line.at is not None] if file.wall else []
    data = {
        "path": file.path,
        "bytes": file.bytes,
        "read_bytes": file.read_bytes,
        "compression": file.compression,
        "lines": file.lines,
        "first_at": min(moments, default=None),
        "last_at": max(moments, default=None),
        "what": file.what or "unknown",
        "attempts": max(1, len(file.attempts)),
        "cut_lines": file.cut_lines,
        "clock": file.clock,
    }
    case.add("log.file", cell=LAST, source=file.path, began=file.began, took_s=file.took_s, outcome=file.outcome, reason=file.reason, data=data)


def _write_attempt(  # noqa: PLR0917 - one row needs all of it
    case: Case, file: ReadFile, number: int, attempt: Attempt, speakers: Speakers, cell: str, after: float | None
) -> None:
    whose = speakers.of_file(file)
    last = file.lines if attempt is file.attempts[-1] else attempt.last
    base = {"path": file.path, "file": number, "rank": whose.rank, "rank_source": whose.source, "host": whose.host, "clock": file.clock}
    for rows in _records(_since_then(attempt.rows, after if file.wall else None)):
        shown = [[line.number, line.at if file.wall else None, speakers.of_line(file, line), line.host, line.text] for line in rows]
        hide_keys(shown)
        has_end = file.outcome == "ok" and bool(rows) and rows[-1] is attempt.rows[-1]
        data = {**base, "rows": shown, "lines": last - attempt.begins + 1, "last_line": last, "has_end": has_end}
        case.add("log.extract", cell=cell, source=file.path, began=file.began, data=data)


def _since_then(rows: Iterable[Line], after: float | None) -> list[Line]:
    """The rows from a moment on; one without a stamp is as old as the last stamp before it."""
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


def _since(text: str) -> float | str | None:
    """A moment in Unix seconds, a span as it was given, or None; UsageError for anything else. A time without a zone is one as the log writes it."""
    given = text.strip()
    if not given:
        return None
    if _SPAN.fullmatch(given):
        return given
    try:
        moment = dt.datetime.fromisoformat(given.replace("Z", "+00:00"))
    except ValueError:
        raise UsageError(f"--since needs a time such as 2026-11-21T10:30, or a span such as 30m or 2h, not {given[:40]!r}.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.timezone.utc)).timestamp()


def _span(text: str) -> float:
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"([\d.]+)([smhd])", text))
