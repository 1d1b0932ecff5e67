"""Reads one file: recognises it by its content, and keeps lines of a log or records evidence of
another kind.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from trainprobe.case import Case
from trainprobe.logs import notebooks
from trainprobe.logs.environment_reports import read_environment_report, record_environment_report
from trainprobe.logs.kinds import (
    JSON_CAP_BYTES,
    kind_of,
    look_at_kernel_text,
    record_environment_file,
)
from trainprobe.logs.lines import Line, decoded
from trainprobe.logs.opening import STDIN, NoLogError, Opened, Outcome
from trainprobe.logs.packed_dumps import CAP_BYTES, PackedDumps
from trainprobe.logs.read_ahead import ReadAhead
from trainprobe.logs.read_progress import ReadProgress
from trainprobe.logs.scanning import WHOLE_LINES, FileScan
from trainprobe.logtext.wrapped_lines import has_broken_frames, rejoined, wrap_width

HEAD_BYTES = 256 * 2**10
GIVEN_BYTES = 8 * 2**20
LONGEST_RAW = 2**20
# What a line has that begins with a comma, as the rest of a frame does.
_GOES_ON = (b"\n, ", b" , ", b"\t, ", b"\xa0, ")
Content = bytes  # a file read has a field of that name


@dataclass
class Attempt:
    """The lines kept of one attempt, `rows`; `begins` and `last` number its first and last line."""

    number: int
    begins: int
    last: int
    rows: list[Line]


@dataclass
class ReadFile:
    """A file that was read, or the reason why it was not.

    `what` is log, sacct, kernel-log, error-file, given, empty, flight-recorder or stacks (of a
    packed dump), or "" for an unknown kind. `numbers` are the line numbers where a terminal had
    wrapped the lines. `wall` says that the times of its lines are Unix seconds. `content` is that
    of an error file, which is recorded once all attempts are known.
    """

    path: str
    what: str = ""
    bytes: int | None = None
    read_bytes: int = 0
    compression: str = ""
    lines: int = 0
    cut_lines: int = 0
    outcome: Outcome = "ok"
    reason: str = ""
    newest: float | None = None
    began: float = 0.0
    took_s: float = 0.0
    wall: bool = False
    clock: str = "none"
    attempts: list[Attempt] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    content: Content = b""

    @property
    def moments(self) -> list[float]:
        """When the kept lines were written, Unix seconds; empty where no line has a date."""
        lines = [line for attempt in self.attempts for line in attempt.rows] if self.wall else []
        return [line.at for line in lines if line.at is not None]


def read_file(  # noqa: PLR0917 - one reading needs all of it
    case: Case,
    path: str,
    cell: str,
    ends: float,
    cap: int,
    pace: ReadProgress,
    stopped: Callable[[], bool] = bool,
    dumps: PackedDumps | None = None,
) -> ReadFile:
    """Read one file until `ends` (monotonic), keeping at most `cap` lines of each attempt.

    Logs and error files are returned; every other kind is recorded in the case. Dumps that are
    compressed or come through stdin go to `dumps`. Reading ends when `stopped` is true. Never
    raises because of the file.
    """
    found = ReadFile(path, began=time.time())
    clock = time.monotonic()
    feed = ReadAhead(path, stopped)
    scan: FileScan | None = None
    stream = feed.read(ends)
    try:
        head, ended = _head(stream)
        rest: Iterator[bytes] = iter(()) if ended else stream
        found.newest = feed.opened.newest if feed.opened is not None else None
        found.what = kind_of(head, path)
        head, rest, ended = _unwrapped(found, head, rest, ended)
        packed = dumps is not None and (
            path == STDIN or (feed.opened is not None and feed.opened.compression != "")
        )
        if dumps is not None and packed and dumps.may_be(found.what, head):
            head = _together(head, rest, CAP_BYTES)
            if kind := dumps.take(path, head, found.newest):
                found.what = kind
                return found
        if found.what in ("log", "sacct", "stacks", "flight-recorder"):
            found.what = "log" if found.what != "sacct" else "sacct"
            # A pipe has no date; its content is most likely from today.
            scan = FileScan(found.newest if path != STDIN else time.time(), cap=cap, whole=cap)
            if ended:
                head = _rejoined(found, head)
                _record_pasted_report(case, path, head, cell)
            scan.feed(head)
            for piece in rest:
                scan.feed(piece)
                pace.at(feed.opened.read_bytes if feed.opened is not None else 0)
        else:
            _other(case, found, cell, head, rest)
    except PermissionError:
        reason = "it may not be read by us; run trainprobe as its owner"
        found.outcome, found.reason = "denied", reason
    except TimeoutError as error:
        found.what, found.outcome = "log", "partial"
        found.reason = f"nothing of it was read: {error.strerror}"
    except OSError as error:
        found.outcome, found.reason = "unavailable", f"it cannot be read: {error.strerror or error}"
    except NoLogError as error:
        found.outcome, found.reason, found.what = "unavailable", f"it {error}", ""
    finally:
        stream.close()
        _tell(found, feed.opened)
    if scan is not None:
        _finish(found, scan)
    found.took_s = time.monotonic() - clock
    return found


def _head(stream: Iterator[bytes]) -> tuple[bytes, bool]:
    """Enough of the beginning to recognise the file, and whether that is all of it."""
    head = b""
    for piece in stream:
        head += piece
        if len(head) >= HEAD_BYTES:
            return head, False
    return head, True


def _rejoined(found: ReadFile, content: bytes) -> bytes:
    """Undo a terminal's wrapping of a short text; `ReadFile.numbers` keeps the line numbers."""
    if found.what == "sacct":
        return content  # the rows of a table are equally long by design
    lines = decoded(content).split("\n")
    plain = [line.rstrip("\r") for line in lines] if b"\r" in content else lines
    if not (wrap_width(plain) or _goes_on(content, plain)):
        return content
    whole = rejoined(plain)
    found.numbers = [number for number, _ in whole]
    return "\n".join(line for _, line in whole).encode("utf-8", "replace")


def _goes_on(content: bytes, lines: list[str]) -> bool:
    return any(text in content for text in _GOES_ON) and has_broken_frames(lines)


def _record_pasted_report(case: Case, path: str, content: bytes, cell: str) -> None:
    """Versions, variables and limits that people paste below a traceback."""
    text = decoded(content)
    if text.count("\n") <= WHOLE_LINES and read_environment_report(text):
        record_environment_report(case, path, text, "log", cell=cell)


def _unwrapped(
    found: ReadFile, head: bytes, rest: Iterator[bytes], ended: bool
) -> tuple[bytes, Iterator[bytes], bool]:
    """Of a notebook, what its cells printed: that is a log. Anything else stays as it is."""
    if found.what != "notebook":
        return head, rest, ended
    try:
        printed = notebooks.printed_output(_together(head, rest, notebooks.CAP_BYTES))
    except ValueError:
        raise NoLogError("is a notebook that is not whole") from None
    found.what = "log"
    return printed, iter(()), True


def _tell(found: ReadFile, opened: Opened | None) -> None:
    if opened is None:
        return
    found.bytes, found.read_bytes = opened.bytes, opened.read_bytes
    found.compression = opened.compression
    if opened.reason and not found.reason:
        found.outcome, found.reason = opened.outcome, opened.reason


def _finish(found: ReadFile, scan: FileScan) -> None:
    selections = scan.finish()
    found.lines, found.cut_lines, found.clock = scan.lines, scan.cut_lines, scan.reader.clock.kind
    found.wall = found.clock in ("wall", "wall-utc")
    if found.numbers:
        for selection in selections:
            selection.renumber(found.numbers)
    found.attempts = [
        Attempt(each.number, each.begins, each.last, each.rows()) for each in selections
    ]


def _other(case: Case, found: ReadFile, cell: str, head: bytes, rest: Iterator[bytes]) -> None:
    """Record evidence from a file that is not a log."""
    if found.what == "empty":
        for _ in rest:  # megabytes of blanks or zeros come before the log, if there is one
            pass
    elif found.what == "kernel-log":
        look_at_kernel_text(
            case, found.path, _text_lines(found, head, rest), found.newest, cell=cell
        )
    elif found.what == "error-file":
        found.content = _together(head, rest, JSON_CAP_BYTES)[:JSON_CAP_BYTES]
    elif found.what == "given":
        content = _together(head, rest, GIVEN_BYTES)[:GIVEN_BYTES]
        record_environment_file(case, found.path, content, cell=cell)
    else:
        raise NoLogError("is no text")


def _together(head: bytes, rest: Iterator[bytes], cap: int) -> bytes:
    """All of it, or what first exceeds `cap`."""
    parts, size = [head], len(head)
    for piece in rest:
        if size > cap:
            break
        parts.append(piece)
        size += len(piece)
    return b"".join(parts)


def _text_lines(found: ReadFile, head: bytes, rest: Iterator[bytes]) -> Iterator[str]:
    left = b""
    for piece in itertools.chain((head,), rest):
        *whole, left = (left + piece).split(b"\n")
        if len(left) > LONGEST_RAW:
            whole, left = [*whole, left], b""
        found.lines += len(whole)
        yield from (decoded(raw[:HEAD_BYTES]) for raw in whole)
    if left:
        found.lines += 1
        yield decoded(left[:HEAD_BYTES])
