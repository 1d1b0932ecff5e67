"""Dumps of torch's flight recorder: those that appeared while a cell ran, those that a live job has on disk, those that somebody saved.

Each is copied into the case as it is, and read (flight_reading): what it says stands in the evidence.
"""

from __future__ import annotations

import os
import re
import time
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from trainprobe.case import Case
from trainprobe.collect.dump_files import DumpRead
from trainprobe.collect.flight_paths import dumps_of_job, find_dumps
from trainprobe.collect.flight_reading import FILE_CAP_BYTES, NoDumpError, rank_in_entries, read_dump
from trainprobe.collect.members import Member, host_name
from trainprobe.collect.seen import Seen, record, refused
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject
from trainprobe.regular_files import read_regular_file

# The clock of a file server may be behind the host's by some seconds.
CLOCK_SLACK_S = 2.0
READ_S = 10.0
COPY_CAP_BYTES = 16 * 2**20
# Where a rank wrote both forms, the pickle is read: it has the frames.
FRAMES_ARE_WORTH_S = 10.0


def look_at_flight_recorder(case: Case, cell: str, prefix: str, members: Sequence[Member] = (), *, deadline_s: float = 5.0) -> List[Evidence]:
    """Record one `flight_recorder` per file whose name is `prefix` and a rank (torch writes `<prefix><rank>`); none where none appeared."""
    ends = time.monotonic() + deadline_s
    return [look_at_dump(case, cell, path, rank, members, ends=ends) for path, rank in find_dumps(prefix)]


def look_at_live_dumps(
    case: Case, cell: str, members: Sequence[Member], environment: Mapping[str, Mapping[str, str]], began: Optional[float], deadline_s: float = 2.0
) -> List[Evidence]:
    """Record one `flight_recorder` per dump that lies where this job would write one. Nothing is asked of the job.

    `began` is when the job began, in Unix seconds: an older dump is of an earlier job, and is recorded as `unavailable`, unread.
    So is one of another user. Of two dumps of one rank the newer is read. `environment` maps a rank, as text, or "job" to its variables.
    """
    ends = time.monotonic() + deadline_s
    ours = {rank for member in members if (rank := member.rank) is not None}
    owners = _owners(members)
    newest: Dict[int, Tuple[float, str, str]] = {}
    refusals = []
    for found in dumps_of_job(members, environment):
        stale, written_at = _not_this_jobs(found.path, found.shown, owners, began)
        if stale and found.rank in ours:
            refusals.append((found.rank, refused("unavailable", stale, path=found.shown, rank=found.rank, written_at=written_at)))
            continue
        written_at += FRAMES_ARE_WORTH_S * (not found.path.endswith(".json"))
        if not stale and written_at >= newest.get(found.rank, (0.0, "", ""))[0]:
            newest[found.rank] = (written_at, found.path, found.shown)
    records = [look_at_dump(case, cell, path, rank, members, ends=ends, shown=shown) for rank, (_, path, shown) in sorted(newest.items())]
    for rank, seen in refusals:
        if rank not in newest:
            records.append(record(case, "flight_recorder", seen, subject=_subject(rank, members), cell=cell, source=os.path.basename(str(seen.data["path"]))))
    return records


def look_at_dump(
    case: Case,
    cell: str,
    path: str,
    rank: Optional[int],
    members: Sequence[Member] = (),
    *,
    ends: float,
    shown: str = "",
    host: Optional[str] = None,
    read: Optional[DumpRead] = None,
) -> Evidence:
    """Read one dump unless it was `read` already, copy it into the case, and record it.

    `rank` None: the rank is taken from its sends and receives, if it has any.
    """
    began, clock = time.time(), time.monotonic()
    shown = shown or path
    seen, name = (
        _read(case, cell, path, shown, ends - clock, read) if clock < ends else (refused("timed_out", "no time was left to read this dump", path=shown), "")
    )
    if rank is None:
        rank = rank_in_entries(seen.data.get("entries") or [])
    subject = _subject(rank, members, host)
    seen = Seen({"rank": rank, **seen.data}, seen.outcome, seen.reason, began, time.monotonic() - clock)
    return record(case, "flight_recorder", seen, subject=subject, cell=cell, source=os.path.basename(path), files=[name] if name else [])


def _subject(rank: Optional[int], members: Sequence[Member], host: Optional[str] = None) -> Subject:
    known = next((member.subject for member in members if member.role == "rank" and member.rank == rank), None)
    return known or Subject("rank" if rank is not None else "process", host=host_name() if host is None else host, rank=rank, role="rank")


def _owners(members: Sequence[Member]) -> Set[int]:
    """The users of the job's processes; root may write for anybody."""
    owners = {0}
    for member in members:
        try:
            owners.add(os.stat(f"/proc/{member.pid}").st_uid)
        except OSError:
            continue
    return owners


def _not_this_jobs(path: str, shown: str, owners: Set[int], began: Optional[float]) -> Tuple[str, float]:
    """Why this dump cannot be this job's, or ""; and when it was written, in Unix seconds."""
    try:
        found = os.stat(path)
    except OSError as error:
        return f"the dump {shown} cannot be read: {error.strerror}", 0.0
    if began is not None and found.st_mtime < began - CLOCK_SLACK_S:
        return f"the dump {shown} is older than this job, so an earlier one wrote it", found.st_mtime
    if owners != {0} and found.st_uid not in owners:
        return f"the dump {shown} belongs to another user (uid {found.st_uid})", found.st_mtime
    return "", found.st_mtime


def _read(case: Case, cell: str, path: str, shown: str, left_s: float, read: Optional[DumpRead]) -> Tuple[Seen, str]:
    """What the dump says, and the name of its copy. A dump that cannot be understood is copied too: somebody else may."""
    try:
        content = read_regular_file(path, FILE_CAP_BYTES)
        written_at = os.stat(path).st_mtime
    except ValueError as error:
        return refused("unavailable", f"the dump {error}", path=shown), ""
    except OSError as error:
        return refused("unavailable", f"the dump cannot be read: {error.strerror}", path=shown), ""
    data = {"path": shown, "bytes": len(content), "written_at": written_at}
    name, trouble = _copy(case, cell, path, content)
    try:
        said = read.said if read else read_dump(content, deadline_s=min(READ_S, left_s))
    except NoDumpError as error:
        read = DumpRead({}, str(error))
    if read is not None and read.broken:
        return refused("partial", f"the dump cannot be used: {read.broken}", **data), name
    return Seen({**data, **said}, "partial" if trouble else "ok", trouble), name


def _copy(case: Case, cell: str, path: str, content: bytes) -> Tuple[str, str]:
    """The name of the copy within the case, and why there is none. A large dump is not copied: what it says is in the evidence."""
    if len(content) > COPY_CAP_BYTES:
        return "", ""
    safe = re.sub(r"[^A-Za-z0-9._@=,+-]", "_", f"{cell}.{os.path.basename(path)}")[-100:]
    name, place = f"files/{safe}", 1
    while os.path.lexists(os.path.join(case.folder, name)):
        place += 1
        name = f"files/{place}.{safe}"
    try:
        # A pickle, so it is kept byte for byte; text is what `Case.keep_file` is for.
        with open(os.path.join(case.folder, name), "wb") as copy:
            copy.write(content)
    except OSError as error:
        return "", f"the dump could not be copied into the case: {error.strerror}"
    return name, ""
