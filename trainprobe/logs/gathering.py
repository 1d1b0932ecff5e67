"""Reads many files into one case: dumps and stack dumps as they are, and logs as extracts."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from trainprobe.case import Case
from trainprobe.collect.inputs import Saved, find_saved, look_at_saved
from trainprobe.errors import UsageError
from trainprobe.logs.environment_reports import record_launch_environment
from trainprobe.logs.extracts import record_file, write_extracts
from trainprobe.logs.finding import NAME, STDIN, Found
from trainprobe.logs.kinds import look_at_error_text
from trainprobe.logs.literal_search import SLOW, is_fast, signature_search
from trainprobe.logs.packed_dumps import PackedDumps
from trainprobe.logs.read_progress import ReadProgress
from trainprobe.logs.reading import ReadFile, read_file
from trainprobe.logs.scanning import WHOLE_LINES
from trainprobe.logs.timeline import LAST
from trainprobe.model.progress import Progress
from trainprobe.model.request import ExplainRequest
from trainprobe.saved_case import read_case

MOST_NAMED = 10
# Over all files together, since judging a row takes some 0.2 ms. Each file may keep its share and
# whatever the others leave.
ROWS_IN_ALL = 40_000
LEAST_ROWS = 40
# Error files wait in memory until all attempts are known; beyond this size they count as the last
# attempt's.
WAITING_BYTES = 64 * 2**20
_NOTHING = ("", "empty")
FILE_S = 1800.0
WHOLE_S = 3600.0
_SPAN = re.compile(r"(?:\d{1,9}(?:\.\d{1,3})?[smhd]){1,4}")


def gather(case: Case, asked: ExplainRequest, found: Found, progress: Progress) -> None:
    """Record in `case` everything that was found, and whatever was left out or not understood.

    Ctrl-C ends the reading; what was read so far is recorded. Raises UsageError where nothing can
    be judged.
    """
    since = _parse_since(asked.since)
    for says in found.unread:
        _not_read(case, says)
    found.cases[:] = _kept_cases(case, found.cases, alone=not found.files)
    record_launch_environment(case, asked.env_files, asked.nodes, asked.gpus)
    saved = find_saved(found.files)
    with PackedDumps() as packed:
        _gather_files(case, asked, found, saved, packed, progress, since)


def _kept_cases(case: Case, folders: Sequence[str], *, alone: bool) -> list[str]:
    """Copy the evidence of earlier cases; return the folders that could be read."""
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
    case: Case,
    asked: ExplainRequest,
    found: Found,
    saved: Saved,
    packed: PackedDumps,
    progress: Progress,
    since: float | str | None,
) -> None:
    trouble = [*found.left_out, *([SLOW] if saved.rest and not is_fast() else ())]
    read: list[ReadFile] = []
    why_unread = "no time was left"
    try:
        _read_all(case, saved.rest, asked, read, progress, packed)
    except KeyboardInterrupt:
        why_unread = "the reading was interrupted"
        if not (
            found.cases
            or saved.dumps
            or saved.stacks
            or any(file.what not in _NOTHING for file in read)
        ):
            raise
        case.add("interrupted", cell=LAST, data={"cell": LAST, "phase": "reading"})
    saved.dumps.extend(packed.saved.dumps)
    saved.stacks.extend(packed.saved.stacks)
    if saved.dumps or saved.stacks:
        look_at_saved(case, saved, packed.shown, copy_dumps=asked.case is not None)
    nothing = [file for file in read if not file.what]
    unread = saved.rest[len(read) :]
    if unread:
        trouble.append(f"Not read, since {why_unread}: {len(unread)} of {len(saved.rest)} files.")
    if not (found.cases or saved.dumps or saved.stacks or len(nothing) < len(read)):
        raise UsageError(
            f"Nothing in {', '.join(asked.paths[:3])} is a log, a dump or a case:"
            f" {_named(nothing) or 'it is empty'}.",
            NAME,
        )
    if read:
        write_extracts(case, asked, read, since)
    for path in unread:
        record_file(
            case,
            ReadFile(
                path, what="log", outcome="partial", reason=f"nothing of it was read: {why_unread}"
            ),
        )
    if nothing:
        trouble.append(f"Not understood: {_named(nothing)}.")
    partly = [file for file in read if file.what and file.outcome != "ok"]
    if partly:
        trouble.append(f"Not read wholly: {_named(partly)}.")
    if trouble:
        case.add("log.trouble", cell=LAST, data={"says": trouble})


def _named(files: Sequence[ReadFile]) -> str:
    shown = "; ".join(
        f"{file.path} ({file.reason.removeprefix('it ') or 'nothing in it is known'})"
        for file in files[:MOST_NAMED]
    )
    return shown + (f" and {len(files) - MOST_NAMED} more" if len(files) > MOST_NAMED else "")


def _read_all(
    case: Case,
    paths: Sequence[str],
    asked: ExplainRequest,
    read: list[ReadFile],
    progress: Progress,
    packed: PackedDumps,
) -> None:
    ends = time.monotonic() + (asked.timeout_s or WHOLE_S)
    if paths:
        signature_search()  # built once; its cost is not part of the reading time
    pace = ReadProgress(paths, progress)
    left, waiting = ROWS_IN_ALL, 0
    try:
        with first_interrupt_stops() as stopped:
            for place, path in enumerate(paths):
                if place and time.monotonic() > ends:
                    return
                read.append(
                    _read_one(
                        case, path, ends, left // max(1, len(paths) - place), pace, stopped, packed
                    )
                )
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


def _read_one(  # noqa: PLR0917 - as above
    case: Case,
    path: str,
    ends: float,
    share: int,
    pace: ReadProgress,
    stopped: Callable[[], bool],
    packed: PackedDumps,
) -> ReadFile:
    """Bound the lines of one file: a long one must not take the share of many short ones, and each
    keeps at least its beginning and end.
    """
    cap = max(LEAST_ROWS, min(WHOLE_LINES, share))
    return read_file(
        case,
        path,
        LAST,
        ends if path == STDIN else min(ends, time.monotonic() + FILE_S),
        cap,
        pace,
        stopped,
        packed,
    )


def _parse_since(text: str) -> float | str | None:
    """A time in Unix seconds, a span such as "2h" as it stands, or None; UsageError for anything
    else. A time without a zone is in the zone of the log.
    """
    text = text.strip()
    if not text:
        return None
    if _SPAN.fullmatch(text):
        return text
    try:
        moment = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise UsageError(
            "--since needs a time such as 2026-11-21T10:30, or a span such as 30m or 2h, not"
            f" {text[:40]!r}."
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.timezone.utc)).timestamp()


@contextlib.contextmanager
def first_interrupt_stops() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether Ctrl-C was pressed; a second Ctrl-C raises as usual.

    In a thread, or under another handler, Ctrl-C keeps its effect.
    """
    asked = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if (
        threading.current_thread() is not threading.main_thread()
        or before is not signal.default_int_handler
    ):
        yield asked.is_set
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            signal.default_int_handler(number, frame)
        asked.set()

    signal.signal(signal.SIGINT, on_signal)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
