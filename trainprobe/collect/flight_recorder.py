"""Dumps of torch's flight recorder that appeared while a cell ran. They are copied as they are; reading them is another matter."""

from __future__ import annotations

import os
import re
import time
from typing import List, Optional, Sequence

from trainprobe.case import Case
from trainprobe.collect.members import Member, host_name
from trainprobe.collect.seen import Seen, record, refused
from trainprobe.collect.source import read_regular_file
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject

FILE_CAP_BYTES = 64 * 2**20
DUMPS_CAP = 1024


def look_at_flight_recorder(case: Case, cell: str, prefix: str, members: Sequence[Member] = (), *, deadline_s: float = 5.0) -> List[Evidence]:
    """Record one `flight_recorder` per file whose name is `prefix` and a rank (torch writes `<prefix><rank>`); none where none appeared."""
    by_rank = {member.rank: member.subject for member in members if member.role == "rank"}
    ends = time.monotonic() + deadline_s
    records = []
    for path, rank in find_dumps(prefix):
        began, clock = time.time(), time.monotonic()
        subject = by_rank.get(rank) or Subject("rank", host=host_name(), rank=rank, role="rank")
        seen, name = _copy(case, cell, path) if clock < ends else (refused("timed_out", "no time was left to copy this dump", path=path), "")
        seen = Seen({"rank": rank, **seen.data}, seen.outcome, seen.reason, began, time.monotonic() - clock)
        records.append(record(case, "flight_recorder", seen, subject=subject, cell=cell, source=os.path.basename(path), files=[name] if name else []))
    return records


def find_dumps(prefix: str) -> list[tuple[str, Optional[int]]]:
    """The dumps with their ranks, in the order of the ranks."""
    folder, start = os.path.split(prefix)
    name = re.compile(re.escape(start) + r"(\d{1,7})$")
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    found = [(int(match.group(1)), os.path.join(folder, match.string)) for match in map(name.match, names) if match]
    return [(path, rank) for rank, path in sorted(found)[:DUMPS_CAP]]


def _copy(case: Case, cell: str, path: str) -> tuple[Seen, str]:
    try:
        content = read_regular_file(path, FILE_CAP_BYTES)
    except ValueError as error:
        return refused("unavailable", f"the dump {error}", path=path), ""
    except OSError as error:
        return refused("unavailable", f"the dump cannot be read: {error.strerror}", path=path), ""
    data = {"path": path, "bytes": len(content)}
    name = "files/" + re.sub(r"[^A-Za-z0-9._@=,+-]", "_", f"{cell}.{os.path.basename(path)}")
    try:
        # A pickle, so it is kept byte for byte; text is what `Case.keep_file` is for.
        with open(os.path.join(case.folder, name), "wb") as copy:
            copy.write(content)
    except OSError as error:
        return refused("partial", f"the dump could not be copied into the case: {error.strerror}", **data), ""
    if not content:
        return refused("partial", "the dump is empty; its writer may have been ended over it", **data), name
    return Seen(data), name
