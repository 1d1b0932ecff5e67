"""Dumps of torch's flight recorder: those that appeared while a cell ran, and those that somebody
saved. `collectors/flight_recorder.py` finds those of a live job.

Each is copied into the case as it is, and read (flight_reading): what it says stands in the
evidence.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from types import MappingProxyType
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from trainprobe.case import Case
from trainprobe.collect.dump_files import NO_TIME, DumpRead, dated, read_dump_files
from trainprobe.collect.flight_paths import find_dumps
from trainprobe.collect.flight_reading import FILE_CAP_BYTES, rank_in_entries
from trainprobe.collect.look_results import LookResult, record, refused
from trainprobe.collect.members import Member, host_name
from trainprobe.model.evidence import Evidence, LookOutcome
from trainprobe.model.subjects import JOB, Subject
from trainprobe.regular_files import open_regular, read_regular_file

COPY_CAP_BYTES = 16 * 2**20


def look_at_flight_recorder(
    case: Case, cell: str, prefix: str, members: Sequence[Member] = (), *, deadline_s: float = 5.0
) -> List[Evidence]:
    """Record one `flight_recorder` per file named `prefix` and a rank."""
    ends = time.monotonic() + deadline_s
    found = find_dumps(prefix)
    read = read_dump_files([path for path, _ in found], ends)
    return [
        record(case, "flight_recorder", look, subject=JOB, cell=cell)
        for path, rank in found
        for look in [look_into_dump(case.folder, cell, path, rank, members, read=read[path])]
    ]


def look_at_dumps(
    case: Case,
    cell: str,
    dumps: Sequence[Tuple[str, Optional[int], DumpRead]],
    *,
    shown: Mapping[str, str] = MappingProxyType({}),
    host: Optional[str] = None,
    copy: bool = True,
) -> None:
    """Record dumps that end alike, each with its path and rank, in one record.

    Its data are those of one dump, with the earliest times of the entries, and `dumps`: a row
    [rank, path, bytes, written_at, copy] for each. The rank is known where there are several.
    """
    began, clock = time.time(), time.monotonic()
    rows: List[List[Any]] = []
    read: List[DumpRead] = []
    troubles: List[str] = []
    for path, rank, one in dumps:
        try:
            found = os.stat(path) if len(dumps) > 1 else None
        except OSError:
            found = None
        if found is None or found.st_size > FILE_CAP_BYTES:
            alone = look_into_dump(
                *(case.folder, cell, path, rank),
                read=one,
                shown=shown.get(path, ""),
                host=host,
                copy=copy,
            )
            record(case, "flight_recorder", alone, subject=JOB, cell=cell)
            continue
        name, trouble = _copy(case.folder, cell, path, found.st_size) if copy else ("", "")
        rows.append([rank, shown.get(path, path), found.st_size, found.st_mtime, name])
        read.append(one)
        troubles += [trouble] if trouble else []
    if not rows:
        return
    data = dated(read[0].content, list(map(min, zip(*(one.times for one in read)))))
    result = LookResult(
        {"dumps": rows, **data},
        "partial" if troubles else "ok",
        troubles[0] if troubles else "",
        source=f"{os.path.basename(dumps[0][0])} and {len(rows) - 1} that end alike",
        files=tuple(row[-1] for row in rows),
    ).at(began, time.monotonic() - clock)
    subject = Subject("job", host=host_name() if host is None else host)
    record(case, "flight_recorder", result, subject=subject, cell=cell)


def look_into_dump(
    folder: str,
    cell: str,
    path: str,
    rank: Optional[int],
    members: Sequence[Member] = (),
    *,
    read: DumpRead,
    shown: str = "",
    host: Optional[str] = None,
    copy: bool = True,
) -> LookResult:
    """Return what was `read` of one dump, and copy the file into the case's `folder`. A dump that
    cannot be understood is copied too: somebody else may.

    `rank` None: the rank is taken from its sends and receives, if it has any.
    """
    began, clock = time.time(), time.monotonic()
    result = _result(folder, cell, path, shown or path, read, copy=copy)
    if rank is None:
        rank = rank_in_entries(result.data.get("entries") or [])
    return replace(
        result,
        data={"rank": rank, **result.data},
        subject=subject_of_dump(rank, members, host),
        source=os.path.basename(path),
    ).at(began, time.monotonic() - clock)


def subject_of_dump(
    rank: Optional[int], members: Sequence[Member], host: Optional[str] = None
) -> Subject:
    known = next(
        (member.subject for member in members if member.role == "rank" and member.rank == rank),
        None,
    )
    return known or Subject(
        "rank" if rank is not None else "process",
        host=host_name() if host is None else host,
        rank=rank,
        role="rank",
    )


def _result(
    folder: str, cell: str, path: str, shown: str, read: DumpRead, *, copy: bool
) -> LookResult:
    try:
        fd, found = open_regular(path)
        os.close(fd)
    except ValueError as error:
        return refused("unavailable", f"the dump {error}", path=shown)
    except OSError as error:
        return refused("unavailable", f"the dump cannot be read: {error.strerror}", path=shown)
    data = {"path": shown, "bytes": found.st_size, "written_at": found.st_mtime}
    if found.st_size > FILE_CAP_BYTES:
        return refused("unavailable", f"the dump {read.broken}", **data)
    name, trouble = _copy(folder, cell, path, found.st_size) if copy else ("", "")
    files = (name,) if name else ()
    if read.broken:
        outcome: LookOutcome = "timed_out" if read.broken == NO_TIME else "partial"
        broken = refused(outcome, f"the dump cannot be used: {read.broken}", **data)
        return replace(broken, files=files)
    return LookResult({**data, **read.dump}, "partial" if trouble else "ok", trouble, files=files)


def _copy(folder: str, cell: str, path: str, size: int) -> Tuple[str, str]:
    """The name of the copy in the case, or why a large dump has none."""
    if size > COPY_CAP_BYTES:
        return "", ""
    safe = re.sub(r"[^A-Za-z0-9._@=,+-]", "_", f"{cell}.{os.path.basename(path)}")[-100:]
    name, place = f"files/{safe}", 1
    while os.path.lexists(os.path.join(folder, name)):
        place += 1
        name = f"files/{place}.{safe}"
    try:
        content = read_regular_file(path, COPY_CAP_BYTES)
        # A pickle, so it is kept byte for byte; text is what `Case.keep_file` is for.
        with open(os.path.join(folder, name), "wb") as copy:
            copy.write(content)
    except OSError as error:
        return "", f"the dump could not be copied into the case: {error.strerror}"
    except ValueError as error:
        return "", f"the dump could not be copied into the case: it {error}"
    return name, ""
