"""Dumps of torch's flight recorder that a live job has on disk. Nothing is asked of the job."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Dict, List, Optional, Sequence, Set, Tuple

from trainprobe.collect.collector import Collector, JobView
from trainprobe.collect.dump_files import read_dump_files
from trainprobe.collect.flight_paths import dumps_of_job
from trainprobe.collect.flight_recorder import look_into_dump, subject_of_dump
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.collect.members import Member

# The clock of a file server may be behind the host's by some seconds.
CLOCK_SLACK_S = 2.0
# Where a rank wrote both forms, the pickle is read: it has the frames.
FRAMES_ARE_WORTH_S = 10.0


def look(job: JobView, deadline_s: float) -> List[LookResult]:
    """Return one result per dump that lies where this job would write one.

    A dump that is older than the job is of an earlier one, and is refused unread; so is one of
    another user. Of two dumps of one rank the newer is read.
    """
    ends = time.monotonic() + deadline_s
    ranks = {rank for member in job.members if (rank := member.rank) is not None}
    owners = _owners(job.members)
    newest: Dict[int, Tuple[float, str, str]] = {}
    refusals: Dict[int, LookResult] = {}
    for found in dumps_of_job(job.members, job.environment):
        stale, written_at = _not_this_jobs(found.path, found.shown, owners, job.began)
        if stale and found.rank in ranks:
            refusal = refused(
                "unavailable", stale, path=found.shown, rank=found.rank, written_at=written_at
            )
            refusals[found.rank] = replace(
                refusal,
                subject=subject_of_dump(found.rank, job.members),
                source=os.path.basename(found.shown),
            )
            continue
        written_at += FRAMES_ARE_WORTH_S * (not found.path.endswith(".json"))
        if not stale and written_at >= newest.get(found.rank, (0.0, "", ""))[0]:
            newest[found.rank] = (written_at, found.path, found.shown)
    read = read_dump_files([path for _, path, _ in newest.values()], ends)
    results = [
        look_into_dump(job.folder, job.cell, path, rank, job.members, read=read[path], shown=shown)
        for rank, (_, path, shown) in sorted(newest.items())
    ]
    return results + [refusal for rank, refusal in refusals.items() if rank not in newest]


def _owners(members: Sequence[Member]) -> Set[int]:
    """The users of the job's processes; root may write for anybody."""
    owners = {0}
    for member in members:
        try:
            owners.add(os.stat(f"/proc/{member.pid}").st_uid)
        except OSError:
            continue
    return owners


def _not_this_jobs(
    path: str, shown: str, owners: Set[int], began: Optional[float]
) -> Tuple[str, float]:
    """Why this dump cannot be this job's, or ""; and when it was written, in Unix seconds."""
    try:
        found = os.stat(path)
    except OSError as error:
        return f"the dump {shown} cannot be read: {error.strerror}", 0.0
    if began is not None and found.st_mtime < began - CLOCK_SLACK_S:
        return (
            f"the dump {shown} is older than this job, so an earlier one wrote it",
            found.st_mtime,
        )
    if owners != {0} and found.st_uid not in owners:
        return f"the dump {shown} belongs to another user (uid {found.st_uid})", found.st_mtime
    return "", found.st_mtime


COLLECTOR = Collector("flight_recorder", look, deadline_s=2.0)
