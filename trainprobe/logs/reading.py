"""One file read: told by what is in it, and turned into what is kept of a log or into another kind of evidence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from trainprobe.case import Case
from trainprobe.logs.feeding import Feed
from trainprobe.logs.given import look_at_given_text
from trainprobe.logs.keeping import Keeper
from trainprobe.logs.kinds import JSON_CAP_BYTES, kind_of, look_at_given_file, look_at_kernel_text
from trainprobe.logs.lines import Line, decoded
from trainprobe.logs.opening import STDIN, NoLogError, Opened, Outcome
from trainprobe.logs.pace import Pace
from trainprobe.logs.packed_dumps import CAP_BYTES, PackedDumps
from trainprobe.logs.scanning import WHOLE_LINES, FileScan
from trainprobe.logs.surroundings_text import read_surroundings
from trainprobe.logtext.wrapped import rejoined, wrap_width

HEAD_BYTES = 256 * 2**10
GIVEN_BYTES = 8 * 2**20
LONGEST_RAW = 2**20
Content = bytes  # a file read has a field of that name


@dataclass
class Attempt:
    """What is kept of one attempt: its `rows` in order; `begins` and `last` are the numbers of its first and last line."""

    number: int
    begins: int
    last: int
    rows: list[Line]


@dataclass
class ReadFile:
    """A file that was read, or why it was not. `what` is log, sacct, kernel-log, error-file, given, empty, flight-recorder or stacks (of a packed dump), or nothing for what was not understood.

    `numbers` are the numbers of its lines where a terminal had broken them. `wall` says that the moments of its lines are Unix seconds.
    `content` is that of an error file, which is written once all attempts are known.
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


def read_file(  # noqa: PLR0917 - one reading needs all of it
    case: Case, path: str, cell: str, ends: float, cap: int, pace: Pace, stopped: Callable[[], bool] = bool, dumps: PackedDumps | None = None
) -> ReadFile:
    """Read one file until `ends` (monotonic), keeping at most `cap` lines of each attempt. Only what is neither a log nor an error file is written into the case here.

    Never raises for what the file is or does. Once `stopped` says so, no more is read.
    What is compressed or comes through stdin and is a dump goes to `dumps`.
    """
    found = ReadFile(path, began=time.time())
    clock = time.monotonic()
    feed = Feed(path, stopped)
    scan: FileScan | None = None
    stream = feed.read(ends)
    try:
        head, ended = _head(stream)
        rest: Iterator[bytes] = iter(()) if ended else stream
        found.newest = feed.opened.newest if feed.opened is not None else None
        found.what = kind_of(head, path)
        packed = dumps is not None and (path == STDIN or (feed.opened is not None and feed.opened.compression != ""))
        if dumps is not None and packed and dumps.may_be(found.what, head):
            head = _together(head, rest, CAP_BYTES)
            if told := dumps.take(path, head, found.newest):
                found.what = told
                return found
        if found.what in ("log", "sacct", "stacks", "flight-recorder"):
            found.what = "log" if found.what != "sacct" else "sacct"
            # Pipes carry no date; what comes through one is most likely of today.
            scan = FileScan(found.newest if path != STDIN else time.time(), cap=cap, whole=cap)
            if ended:
                head = _rejoined(found, head)
                _look_at_surroundings(case, path, head, cell)
            scan.feed(head)
            for piece in rest:
                scan.feed(piece)
                pace.at(feed.opened.read_bytes if feed.opened is not None else 0)
        else:
            _other(case, found, cell, head, rest)
    except PermissionError:
        found.outcome, found.reason = "denied", "it may not be read by us; run trainprobe as its owner"
    except TimeoutError as error:
        found.what, found.outcome, found.reason = "log", "partial", f"nothing of it was read: {error.strerror}"
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
    """Enough of the beginning to tell what it is, and whether that is all; a pipe gives it in crumbs."""
    head = b""
    for piece in stream:
        head += piece
        if len(head) >= HEAD_BYTES:
            return head, False
    return head, True


def _rejoined(found: ReadFile, content: bytes) -> bytes:
    """A short text that a terminal of fixed width has broken, put together again; the lines keep their numbers (`ReadFile.numbers`)."""
    if found.what == "sacct":
        return content  # the rows of a table are equally long by design
    lines = decoded(content).split("\n")
    if not wrap_width([line.rstrip("\r") for line in lines]):
        return content
    whole = rejoined([line.rstrip("\r") for line in lines])
    found.numbers = [number for number, _ in whole]
    return "\n".join(line for _, line in whole).encode("utf-8", "replace")


def _look_at_surroundings(case: Case, path: str, content: bytes, cell: str) -> None:
    """What people paste below a traceback: versions, variables, limits."""
    text = decoded(content)
    if text.count("\n") <= WHOLE_LINES and read_surroundings(text):
        look_at_given_text(case, path, text, "log", cell=cell)


def _tell(found: ReadFile, opened: Opened | None) -> None:
    if opened is None:
        return
    found.bytes, found.read_bytes, found.compression = opened.bytes, opened.read_bytes, opened.compression
    if opened.reason and not found.reason:
        found.outcome, found.reason = opened.outcome, opened.reason


def _finish(found: ReadFile, scan: FileScan) -> None:
    keepers: list[Keeper] = scan.finish()
    found.lines, found.cut_lines, found.clock = scan.lines, scan.cut_lines, scan.reader.clock.kind
    found.wall = found.clock in ("wall", "wall-utc")
    if found.numbers:
        for keeper in keepers:
            keeper.renumber(found.numbers)
    found.attempts = [Attempt(keeper.number, keeper.begins, keeper.last, keeper.rows()) for keeper in keepers]


def _other(case: Case, found: ReadFile, cell: str, head: bytes, rest: Iterator[bytes]) -> None:
    """What is no log becomes evidence of its own kind."""
    if found.what == "empty":
        for _ in rest:  # a log may begin with megabytes of blanks or zeros, and is none for us then
            pass
    elif found.what == "kernel-log":
        look_at_kernel_text(case, found.path, _text_lines(found, head, rest), found.newest, cell=cell)
    elif found.what == "error-file":
        found.content = _whole(head, rest, JSON_CAP_BYTES)
    elif found.what == "given":
        look_at_given_file(case, found.path, _whole(head, rest, GIVEN_BYTES), cell=cell)
    else:
        raise NoLogError("is no text")


def _whole(head: bytes, rest: Iterator[bytes], cap: int) -> bytes:
    return _together(head, rest, cap)[:cap]


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
    for piece in _chained(head, rest):
        *whole, left = (left + piece).split(b"\n")
        if len(left) > LONGEST_RAW:
            whole, left = [*whole, left], b""
        found.lines += len(whole)
        yield from (decoded(raw[:HEAD_BYTES]) for raw in whole)
    if left:
        found.lines += 1
        yield decoded(left[:HEAD_BYTES])


def _chained(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest
