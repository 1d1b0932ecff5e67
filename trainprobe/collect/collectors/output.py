"""The output of processes: both ends of their files, and a common stream taken apart by rank."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from trainprobe.collect.collector import Collector, record_look
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.collect.members import Member
from trainprobe.logtext.prefixes import learn_labels
from trainprobe.logtext.streams import SAMPLE_LINES, rank_and_rest
from trainprobe.model.evidence import Evidence

if TYPE_CHECKING:
    from trainprobe.case import Case

TEXT_CAP_BYTES = 64 * 1024
# The copy in the case is longer than what the evidence holds, and still bounded.
COPY_CAP_BYTES = 1024 * 1024
SPLIT_CAP_BYTES = 16 * 2**20
_BARE_PREFIX = re.compile(r"\[(?:\d+,)?(\d{1,7})\](?:<std(?:out|err)>)?:[ ]?")


class Ends(NamedTuple):
    """Both ends of an output: `size` in bytes, `left_out` the bytes between head and tail."""

    size: int
    head: bytes
    tail: bytes

    @property
    def left_out(self) -> int:
        return max(0, self.size - len(self.head) - len(self.tail))


class Stream(NamedTuple):
    """The file of a stream (stdout, stderr or both), when it was first and last seen to grow (Unix
    s), and how many bytes of it were thrown away before.
    """

    path: str
    name: str = "both"
    first_at: Optional[float] = None
    last_at: Optional[float] = None
    cut_bytes: int = 0

    def data(self, ends: Ends) -> Dict[str, object]:
        return {
            "stream": self.name,
            "bytes": ends.size,
            "cut_bytes": self.cut_bytes,
            "left_out_bytes": ends.left_out,
            "head": ends.head.decode("utf-8", "replace"),
            "tail": ends.tail.decode("utf-8", "replace"),
            "first_at": self.first_at,
            "last_at": self.last_at,
        }


def look_at_output(case: Case, cell: str, member: Member, stream: Stream) -> Evidence:
    """Record one `output`, with a longer copy as a file of the case."""
    files, source = _copy(case, cell, member, stream), os.path.basename(stream.path)

    def look() -> LookResult:
        return replace(read_output(stream), files=files, source=source)

    return record_look(case, COLLECTOR, look, cell=cell, subject=member.subject)[0]


def look_at_common_output(
    case: Case, cell: str, launcher: Member, stream: Stream, ranks: Sequence[Member]
) -> List[Evidence]:
    """Record a launcher's one stream taken apart: the lines of each of `ranks` as that rank's, the
    others as the launcher's.

    Without it a rank that floods the stream would hide the last lines of the others. The copy in
    the case is the stream as it was.
    """
    try:
        ends = read_ends(stream.path, SPLIT_CAP_BYTES)
    except OSError:
        return [look_at_output(case, cell, launcher, stream)]
    texts = split_by_rank(
        (ends.head + ends.tail).decode("utf-8", "replace"),
        {member.rank for member in ranks if member.rank is not None},
    )
    files = _copy(case, cell, launcher, stream)
    whole = stream._replace(cut_bytes=stream.cut_bytes + ends.left_out)

    def results() -> Iterator[LookResult]:
        for member in [launcher, *ranks]:
            text = texts.get(None if member is launcher else member.rank, "")
            if text or member is launcher:
                yield LookResult(
                    whole.data(_ends_of(text.encode("utf-8", "replace"), TEXT_CAP_BYTES)),
                    source=f"{os.path.basename(stream.path)} by prefix",
                    subject=member.subject,
                    files=files,
                )

    return record_look(case, COLLECTOR, results, cell=cell)


def read_output(stream: Stream) -> LookResult:
    """The two ends of the stream. Bytes that are no UTF-8 become question marks."""
    name = os.path.basename(stream.path)
    try:
        return LookResult(stream.data(read_ends(stream.path, TEXT_CAP_BYTES)))
    except FileNotFoundError:
        reason = f"there is no output file {name}"
    except OSError as error:
        reason = f"the output file {name} cannot be read: {error.strerror}"
    return refused("unavailable", reason, stream=stream.name)


def read_ends(path: str, cap_bytes: int) -> Ends:
    """The first and last `cap_bytes` of a growing file, without overlap. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        head = _read_at(fd, 0, min(cap_bytes, size))
        begin = max(len(head), size - cap_bytes)
        return Ends(size, head, _read_at(fd, begin, size - begin))
    finally:
        os.close(fd)


def split_by_rank(text: str, ranks: Set[int]) -> Dict[Optional[int], str]:
    """Take a common stream apart by its prefixes: `[default3]:` (torchrun), `[rank3]:` (torch),
    `[3]:`, `[1,3]<stdout>:` (mpirun).

    Only numbers in `ranks` count, so that a line such as `[2024]: …` stays where it is. Lines
    without a prefix are under None.
    """
    lines: Dict[Optional[int], List[str]] = {}
    whole = text.splitlines(keepends=True)
    labels = learn_labels(whole[:SAMPLE_LINES])
    for line in whole:
        rank, rest = rank_and_rest(line, labels)
        match = _BARE_PREFIX.match(line) if rank is None else None
        if match:
            rank, rest = int(match.group(1)), line[match.end() :]
        if rank not in ranks:
            rank, rest = None, line
        lines.setdefault(rank, []).append(rest)
    return {rank: "".join(parts) for rank, parts in lines.items()}


def _ends_of(content: bytes, cap_bytes: int) -> Ends:
    head = content[:cap_bytes]
    return Ends(len(content), head, content[max(len(head), len(content) - cap_bytes) :])


def _copy(case: Case, cell: str, member: Member, stream: Stream) -> Tuple[str, ...]:
    try:
        ends = read_ends(stream.path, COPY_CAP_BYTES)
    except OSError:
        return ()
    if not ends.size:
        return ()
    gap = f"\n[… {ends.left_out} bytes left out …]\n".encode() if ends.left_out else b""
    who = f"rank{member.rank}" if member.role == "rank" and member.rank is not None else member.role
    name = case.keep_file(f"{cell}.{who}.{stream.name}.txt", ends.head + gap + ends.tail)
    return (name,) if name else ()


def _read_at(fd: int, begin: int, size: int) -> bytes:
    parts: List[bytes] = []
    while size > 0:
        part = os.pread(fd, min(size, 1 << 20), begin)
        if not part:
            break
        parts.append(part)
        begin += len(part)
        size -= len(part)
    return b"".join(parts)


COLLECTOR = Collector("output", None, deadline_s=2.0, rounds=())
