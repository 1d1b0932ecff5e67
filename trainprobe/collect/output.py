"""What processes printed: the beginning and the end of their output files, and a launcher's
common stream taken apart by rank.
"""

from __future__ import annotations

import os
import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Set

from trainprobe.case import Case
from trainprobe.collect.look_results import LookResult, record, refused, side_by_side
from trainprobe.collect.members import Member
from trainprobe.logtext.prefixes import learn_labels
from trainprobe.logtext.streams import SAMPLE_LINES, rank_and_rest
from trainprobe.model.evidence import Evidence

TEXT_CAP_BYTES = 64 * 1024
# The copy in the case is longer than what the evidence holds, and still bounded.
COPY_CAP_BYTES = 1024 * 1024
SPLIT_CAP_BYTES = 16 * 2**20
_BARE_PREFIX = re.compile(r"\[(?:\d+,)?(\d{1,7})\](?:<std(?:out|err)>)?:[ ]?")


class Ends(NamedTuple):
    """The two ends of an output: `size` is the whole, in bytes, `left_out` what lies between
    head and tail.
    """

    size: int
    head: bytes
    tail: bytes

    @property
    def left_out(self) -> int:
        return max(0, self.size - len(self.head) - len(self.tail))


def look_at_output(
    case: Case,
    cell: str,
    member: Member,
    path: str,
    *,
    stream: str = "both",
    first_at: Optional[float] = None,
    last_at: Optional[float] = None,
    cut_bytes: int = 0,
    deadline_s: float = 2.0,
) -> Evidence:
    """Record one `output`. `first_at` and `last_at` (Unix s) are when it was first and last seen
    to grow; `cut_bytes` was thrown away before.
    """
    seen = side_by_side(
        [lambda: read_output(path, stream, first_at, last_at, cut_bytes)], deadline_s
    )[0]
    copies = [_copy(case, cell, member, stream, path)] if seen.data.get("bytes") else []
    return record(
        case,
        "output",
        seen,
        subject=member.subject,
        cell=cell,
        source=os.path.basename(path),
        files=[name for name in copies if name],
    )


def look_at_common_output(
    case: Case,
    cell: str,
    launcher: Member,
    path: str,
    ranks: Sequence[Member],
    *,
    first_at: Optional[float] = None,
    last_at: Optional[float] = None,
    cut_bytes: int = 0,
) -> List[Evidence]:
    """Record a launcher's one stream taken apart: the lines of each of `ranks` as that rank's, the
    others as the launcher's.

    Without it a rank that floods the stream would hide the last words of the others. The copy in
    the case is the stream as it was.
    """
    whole = side_by_side([lambda: read_output(path, "both", first_at, last_at, cut_bytes)], 2.0)[0]
    copies = [name for name in [_copy(case, cell, launcher, "both", path)] if name]
    try:
        ends = read_ends(path, SPLIT_CAP_BYTES)
    except OSError:
        return [
            record(
                case,
                "output",
                whole,
                subject=launcher.subject,
                cell=cell,
                source=os.path.basename(path),
                files=copies,
            )
        ]
    texts = split_by_rank(
        (ends.head + ends.tail).decode("utf-8", "replace"),
        {member.rank for member in ranks if member.rank is not None},
    )
    records = []
    for member in [launcher, *ranks]:
        text = texts.get(None if member is launcher else member.rank, "")
        if not text and member is not launcher:
            continue
        data = _data(
            _ends_of(text.encode("utf-8", "replace"), TEXT_CAP_BYTES),
            "both",
            first_at,
            last_at,
            cut_bytes + ends.left_out,
        )
        seen = LookResult(data, began=whole.began, took_s=whole.took_s)
        records.append(
            record(
                case,
                "output",
                seen,
                subject=member.subject,
                cell=cell,
                source=f"{os.path.basename(path)} by prefix",
                files=copies,
            )
        )
    return records


def read_output(
    path: str, stream: str, first_at: Optional[float], last_at: Optional[float], cut_bytes: int
) -> LookResult:
    """The same without a case. Bytes that are no UTF-8 become question marks."""
    try:
        ends = read_ends(path, TEXT_CAP_BYTES)
    except FileNotFoundError:
        return refused(
            "unavailable", f"there is no output file {os.path.basename(path)}", stream=stream
        )
    except OSError as error:
        return refused(
            "unavailable",
            f"the output file {os.path.basename(path)} cannot be read: {error.strerror}",
            stream=stream,
        )
    return LookResult(_data(ends, stream, first_at, last_at, cut_bytes))


def read_ends(path: str, cap_bytes: int) -> Ends:
    """The first and the last `cap_bytes` of a file that may be growing; no overlap. Raises
    OSError.
    """
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


def _data(
    ends: Ends, stream: str, first_at: Optional[float], last_at: Optional[float], cut_bytes: int
) -> Dict[str, object]:
    return {
        "stream": stream,
        "bytes": ends.size,
        "cut_bytes": cut_bytes,
        "left_out_bytes": ends.left_out,
        "head": ends.head.decode("utf-8", "replace"),
        "tail": ends.tail.decode("utf-8", "replace"),
        "first_at": first_at,
        "last_at": last_at,
    }


def _copy(case: Case, cell: str, member: Member, stream: str, path: str) -> str:
    try:
        ends = read_ends(path, COPY_CAP_BYTES)
    except OSError:
        return ""
    gap = f"\n[… {ends.left_out} bytes left out …]\n".encode() if ends.left_out else b""
    who = f"rank{member.rank}" if member.role == "rank" and member.rank is not None else member.role
    return case.keep_file(f"{cell}.{who}.{stream}.txt", ends.head + gap + ends.tail)


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
