"""`--trigger-dump`: ask a job for its flight-recorder dumps through the pipe that its NCCL backend
made for that.

With TORCH_NCCL_DEBUG_INFO_PIPE_FILE=P in its environment each rank makes a FIFO `P<rank>.pipe`, and
its heartbeat thread, which looks every second, writes a dump for any byte that it finds there
(torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, up to 2.14; gone with nccl2). A byte written is
code set going in the job, so it is done only when asked for.
"""

from __future__ import annotations

import os
import stat
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set

from trainprobe.case import Case
from trainprobe.collect import procfs
from trainprobe.collect.deep_refusals import environment
from trainprobe.collect.dump_files import READ_S, read_dump_files
from trainprobe.collect.flight_paths import dumps_of_job
from trainprobe.collect.flight_recorder import look_into_dump
from trainprobe.collect.look_results import LookResult, record, refused
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import JOB
from trainprobe.system.answering import silent

PIPE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
SETTLED_S, AGAIN_S = 0.3, 0.1


def trigger_dump(
    case: Case,
    cell: str,
    members: Sequence[Member],
    variables: Mapping[str, Mapping[str, str]],
    *,
    deadline_s: float = 10.0,
) -> List[Evidence]:
    """One `trigger_dump` record for each rank among `members`, and a `flight_recorder` record for
    each dump that came of it in time.

    `variables` maps a rank (as text) or "job" to what is known of its environment, as the job's
    record does.
    """
    began, ends = time.time(), time.monotonic() + deadline_s
    ranks = [member for member in members if member.role == "rank" and member.rank is not None]
    asked = {
        member.pid: ask(member, {**variables.get("job", {}), **variables.get(str(member.rank), {})})
        for member in ranks
    }
    waited = {member.rank for member in ranks if asked[member.pid].outcome == "ok"}
    found = _wait(ranks, variables, began, waited, ends)
    read = read_dump_files(list(found.values()), time.monotonic() + READ_S)
    records = []
    for member in ranks:
        result = asked[member.pid]
        if result.outcome == "ok" and member.rank not in found:
            late = (
                f"rank {member.rank} wrote no dump within {deadline_s:g} s after it was asked; its"
                " heartbeat thread may be off or stuck"
            )
            result = refused("timed_out", late, **result.data)
        took_s = time.time() - began
        result = LookResult(result.data, result.outcome, result.reason, began, took_s)
        records.append(
            record(case, "trigger_dump", result, subject=member.subject, cell=cell, source=PIPE)
        )
        if member.rank in found:
            path = found[member.rank]
            dump = look_into_dump(case.folder, cell, path, member.rank, members, read=read[path])
            records.append(record(case, "flight_recorder", dump, subject=JOB, cell=cell))
    return records


def ask(member: Member, variables: Mapping[str, str]) -> LookResult:
    """Write one byte into the rank's pipe, if it is a FIFO of the rank's user with a reader."""
    pid = member.pid
    data: Dict[str, Any] = {"pid": pid, "rank": member.rank, "path": ""}
    gone = procfs.gone(pid, member.started_ticks)
    if gone:
        return refused("unavailable", gone, **data)
    prefix = environment(pid).get(PIPE) or variables.get(PIPE, "")
    if not prefix:
        return refused(
            "unavailable",
            f"{PIPE} is not set for rank {member.rank}, so it has no pipe to be asked through;"
            " --deep needs none",
            **data,
        )
    data["path"] = f"{prefix}{member.rank}.pipe"
    inside = os.path.join(procfs.link(f"/proc/{pid}/cwd") or "/", data["path"])
    silence = silent(f"/proc/{pid}/root{inside}")
    if silence:
        return refused(
            "timed_out", f"the pipe {data['path']} was not asked through: {silence}", **data
        )
    path = (
        f"/proc/{pid}/root{data['path']}"
        if prefix.startswith("/")
        else f"/proc/{pid}/cwd/{data['path']}"
    )
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        why = "nobody reads it" if error.errno == 6 else error.strerror
        return refused(
            "denied" if isinstance(error, PermissionError) else "unavailable",
            f"the pipe {data['path']} cannot be used: {why}",
            **data,
        )
    try:
        there = os.fstat(fd)
        if not stat.S_ISFIFO(there.st_mode) or there.st_uid != _uid(pid):
            return refused(
                "unavailable",
                f"{data['path']} is no pipe of the job's own user; nothing was written to it",
                **data,
            )
        os.write(fd, b"1")
    except OSError as error:
        return refused(
            "unavailable", f"the pipe {data['path']} cannot be written: {error.strerror}", **data
        )
    finally:
        os.close(fd)
    return LookResult(data)


def _wait(
    ranks: Sequence[Member],
    variables: Mapping[str, Mapping[str, str]],
    began: float,
    waited: Set[Optional[int]],
    ends: float,
) -> Dict[Optional[int], str]:
    """Paths of the dumps that were written since `began` and have stopped growing, by rank."""
    found: Dict[Optional[int], str] = {}
    while waited - set(found) and time.monotonic() < ends:
        time.sleep(AGAIN_S)
        for dump in dumps_of_job(ranks, variables):
            try:
                there = os.stat(dump.path)
            except OSError:
                continue
            # The clock of a file server may be behind ours by some seconds; a file that grows is
            # not finished.
            if (
                dump.rank in waited
                and there.st_size
                and there.st_mtime >= began - 2.0
                and there.st_mtime <= time.time() - SETTLED_S
            ):
                found[dump.rank] = dump.path
    return found


def _uid(pid: int) -> Optional[int]:
    columns = (
        procfs.status_fields(procfs.read_page(f"/proc/{pid}/status") or "").get("Uid", "").split()
    )
    return int(columns[1]) if len(columns) > 1 and columns[1].isdecimal() else None
