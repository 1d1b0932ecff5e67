"""The output of processes: both ends of their files, and a common stream taken apart by rank."""

from __future__ import annotations

import base64
import os
import re
import time
from dataclasses import replace
from typing import (
    TYPE_CHECKING,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

from trainprobe.collect.collector import Collector, JobView, record_look
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.collect.members import Member, host_name
from trainprobe.collect.output_child import Ends, read_ends
from trainprobe.collect.output_files import Sink, find_output_files
from trainprobe.logtext.prefixes import learn_labels
from trainprobe.logtext.streams import SAMPLE_LINES, rank_and_rest
from trainprobe.model.evidence import Evidence
from trainprobe.model.ranks import fold_ranks
from trainprobe.model.subjects import Subject

if TYPE_CHECKING:
    from trainprobe.case import Case

TEXT_CAP_BYTES = 64 * 1024
# The copy in the case is longer than what the evidence holds, and still bounded.
COPY_CAP_BYTES = 1024 * 1024
SPLIT_CAP_BYTES = 16 * 2**20
# The files of a live job share this much, since every line of theirs is read at once; each has at
# least the second, and at most TEXT_CAP_BYTES.
ALL_CAP_BYTES, LEAST_CAP_BYTES = 256 * 1024, 16 * 1024
CHILD_CAP_BYTES = 32 * 2**20
CHILD_END_S = 0.2  # for a child that has to be killed
# The clock of a file server may be behind the host's by some seconds.
CLOCK_SLACK_S = 2.0
_BARE_PREFIX = re.compile(r"\[(?:\d+,)?(\d{1,7})\](?:<std(?:out|err)>)?:[ ]?")


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


def look_at_files(job: JobView, deadline_s: float) -> Iterator[LookResult]:
    """What the ranks of a live job and their launcher printed, the end of each file once.

    A file that several ranks write into is taken apart by the prefixes of its lines.
    """
    ends = time.monotonic() + deadline_s
    absent = {rank for rank in job.data.get("absent") or () if isinstance(rank, int)}
    found = find_output_files(
        job.members,
        () if job.data.get("elsewhere") else absent,
        ends,
        slurm_job=job.variables.get("SLURM_JOB_ID", ""),
        cwd=str(job.data.get("cwd") or ""),
    )
    for why, ranks in found.nowhere.items():
        known = sorted(rank for rank in ranks if rank is not None)
        whose = f"the output of {'ranks' if len(known) > 1 else 'rank'} {fold_ranks(known)}"
        yield refused("unavailable", f"{whose if known else 'the output'} {why}", ranks=known)
    here = {member.rank: member for member in job.members if member.role == "rank"}
    for sink, read in _read(found.sinks, ends):
        if isinstance(read, str):
            if not sink.guessed:
                yield refused(
                    "unavailable", f"{sink.shown} cannot be read: {read}", path=sink.shown
                )
            continue
        if b"\0" in read.head + read.tail:
            continue  # no text: a file that is shared as memory, an event file
        if sink.guessed and read.written_at < (job.began or 0.0) - CLOCK_SLACK_S:
            continue  # an earlier run's
        yield from _results(sink, read, here, absent)


def _read(sinks: Sequence[Sink], ends: float) -> Iterator[Tuple[Sink, Union[Ends, str]]]:
    """Each file with its ends, or why there are none: those of another host by a child, which may
    hang.
    """
    from trainprobe.system.answering import silent

    cap_bytes = max(LEAST_CAP_BYTES, min(TEXT_CAP_BYTES, ALL_CAP_BYTES // max(1, len(sinks))))
    untouched = {sink.path: silent(sink.place) for sink in sinks if sink.remote or sink.guessed}
    for sink in sinks:
        if untouched.get(sink.path):
            yield sink, untouched[sink.path]
        elif not sink.remote:
            try:
                yield sink, read_ends(sink.path, cap_bytes, tail_only=True)
            except OSError as error:
                yield sink, str(error.strerror)
    asked = {sink.path: sink for sink in sinks if sink.remote and not untouched[sink.path]}
    if not asked:
        return
    from trainprobe.collect.child_programs import json_lines, run_child

    left_s = max(0.1, ends - time.monotonic() - CHILD_END_S)
    words = (str(cap_bytes), *asked)
    ran = run_child("output_child", *words, timeout_s=left_s, output_cap_bytes=CHILD_CAP_BYTES)
    answers = {answer.get("path"): answer for answer in json_lines(ran.stdout)}
    for path, sink in asked.items():
        answer = answers.get(path)
        if answer is None:
            yield sink, f"its file system gave no answer within {left_s:.1f} s"
        elif "why" in answer:
            yield sink, str(answer["why"])
        else:
            head, tail = (base64.b64decode(answer[name]) for name in ("head", "tail"))
            yield sink, Ends(answer["size"], head, tail, answer["written_at"])


def _results(
    sink: Sink, read: Ends, here: Mapping[Optional[int], Member], absent: Set[int]
) -> Iterator[LookResult]:
    """One result for each rank that wrote into the file, and one for the lines of nobody."""
    now = time.time()
    stream = Stream(sink.shown, sink.stream, last_at=read.written_at)
    base = {
        "path": sink.shown,
        "silent_s": max(0.0, now - read.written_at),
        **({"via": sink.via} if sink.via else {}),
        **({"deleted": True} if sink.deleted else {}),
    }

    def result(rank: Optional[int], ends: Ends, **changed: object) -> LookResult:
        member = here.get(rank) if rank is not None else None
        role = "rank" if rank is not None else "launcher"
        subject = Subject("rank" if rank is not None else "process", host_name(), rank, role=role)
        data = {**stream.data(ends), **base, **changed}
        return LookResult(data, source=sink.shown, subject=member.subject if member else subject)

    whose = next(iter(sink.ranks)) if len(sink.ranks) == 1 else None
    if whose is not None:
        yield result(whose, read)
        return
    text = (read.head + read.tail).decode("utf-8", "replace")
    ranks = {rank for rank in here if rank is not None} | absent
    parts = split_by_rank(text, ranks)
    last = next(
        (rank for rank, part in parts.items() if _last_line(part) == _last_line(text)), None
    )
    for rank, part in parts.items():
        ends = _ends_of(part.encode("utf-8", "replace"), TEXT_CAP_BYTES)
        # of the others nobody knows when they wrote
        timed = {} if rank in (last, None) else {"last_at": None, "silent_s": None}
        yield result(rank, ends, cut_bytes=read.left_out, **timed)


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2].rpartition("]: ")[2]


COLLECTOR = Collector(
    "output", look_at_files, deadline_s=1.5, source="/proc/PID/fd", rounds=("first", "last")
)
