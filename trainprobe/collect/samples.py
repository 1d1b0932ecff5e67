"""Samples of the main threads of several processes over some seconds, by `py-spy record` (0.4).

They are read without a pause: nobody stops for them. A hundred a second over three seconds took
0.1 s of one CPU and 8 MB of memory for one rank on gloo.
"""

from __future__ import annotations

import json
import os
import time
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from trainprobe.case import Case
from trainprobe.collect import procfs, pyspy
from trainprobe.collect.look_results import LookResult, record, refused, side_by_side
from trainprobe.collect.members import Member
from trainprobe.collect.notebook_cells import cell_file
from trainprobe.collect.run_times import RunTimes
from trainprobe.model.evidence import Evidence
from trainprobe.system.run import run
from trainprobe.system.working_folders import working_folder

KIND = "stacks.samples"
RATE = 50
SPELLS_CAP = 2000
STACKS_CAP = 400
CONTENT_CAP_BYTES = 16 * 2**20
START_S = 2.0  # py-spy reads the process's memory map first, longer on a crowded machine
Stack = Tuple[Tuple[str, str, int], ...]


def look_at_samples(
    case: Case,
    cell: str,
    members: Sequence[Member],
    span_s: float,
    given_up: Callable[[], bool] = lambda: False,
    *,
    start_s: float = START_S,
) -> List[Evidence]:
    """Sample all members at the same time for `span_s` seconds; one record each, in order. When
    `given_up` says so, all end at once and without samples. The sampler has `start_s` to begin.
    """
    deadline_s = span_s + start_s
    with working_folder() as folder, RunTimes([member.pid for member in members]) as run_times:
        looks = [
            partial(_sample, member, span_s, deadline_s, folder, given_up, run_times)
            for member in members
        ]
        results = side_by_side(looks, deadline_s + 0.5, len(looks))
    return [
        record(case, KIND, result, subject=member.subject, cell=cell, source="py-spy record")
        for member, result in zip(members, results)
    ]


def _sample(
    member: Member,
    span_s: float,
    deadline_s: float,
    folder: str,
    given_up: Callable[[], bool],
    run_times: RunTimes,
) -> LookResult:
    base: Dict[str, Any] = {"pid": member.pid, "role": member.role, "rate": RATE}
    path, reason = pyspy.find()
    if path is None:
        return refused("unavailable", reason, **base)
    file = os.path.join(folder, f"{member.pid}.json")
    options = ("--nonblocking", "--idle", "--threads", "--full-filenames", "-f", "chrometrace")
    argv = [path, "record", *options, "-r", str(RATE), "-d", str(max(1, round(span_s)))]
    before = _sleeps(member.pid)
    ran = run(
        [*argv, "-o", file, "--pid", str(member.pid)],
        timeout_s=deadline_s,
        output_cap_bytes=65536,
        given_up=given_up,
    )
    ends, after = time.time(), _sleeps(member.pid)
    if before is not None and after is not None:
        base["woke"] = after - before
    if ran.ended.how == "timed_out":
        why = f"py-spy did not finish on process {member.pid} within {deadline_s:.1f} s"
        return refused("timed_out", why, **base)
    if ran.ended.how != "exited" or ran.ended.code != 0:
        outcome, reason = pyspy.why_failed(
            member.pid, ran.stderr.decode("utf-8", "replace"), member.started_ticks
        )
        return refused(outcome, reason, **base)
    try:
        with open(file, "rb") as stream:
            content = stream.read(CONTENT_CAP_BYTES + 1)
    except OSError as error:
        return refused(
            "crashed", f"py-spy left no samples of process {member.pid}: {error}", **base
        )
    found = parse(content, member.pid) if len(content) <= CONTENT_CAP_BYTES else None
    if found is None:
        return refused(
            "crashed", f"py-spy's samples of process {member.pid} cannot be used", **base
        )
    stacks, spells = found
    if not spells:
        why = f"py-spy saw no main thread in process {member.pid}"
        return refused("unavailable", why, **base)
    rows = [
        [{"name": name, "file": source, "line": line} for name, source, line in reversed(stack)]
        for stack in stacks
    ]
    # Its times count from its own beginning; the last one lies right before its end.
    began = ends - spells[-1][1]
    moments = [round(at - began, 3) for at in run_times.moments(member.pid) if at >= began]
    busy = [
        [round(max(0.0, start - began), 3), round(end - began, 3)]
        for start, end in run_times.busy(member.pid)
        if end > began
    ]
    base["clock"] = round(began, 3)
    return LookResult({**base, "ran": moments, "busy": busy, "stacks": rows, "spells": spells})


def _sleeps(pid: int) -> Optional[int]:
    """How often the main thread went to sleep of its own accord; None where that is hidden."""
    fields = procfs.status_fields(procfs.read_page(f"/proc/{pid}/task/{pid}/status") or "")
    count = fields.get("voluntary_ctxt_switches", "")
    return int(count) if count.isdecimal() else None


def parse(content: bytes, pid: int) -> Optional[Tuple[List[Stack], List[Tuple[float, float, int]]]]:
    """From a Chrome trace: the different stacks of the main thread, outermost frame first, and
    spells (from, to, number of the stack) in seconds. None for anything else.

    The outermost entry of each thread names it: `thread (PID): MainThread`.
    """
    try:
        rows = json.loads(content)
        events = [
            (
                int(row["ts"]),
                row["tid"],
                row["ph"],
                str(row["name"])[: pyspy.NAME_CAP],
                cell_file(str(row["args"]["filename"])[: pyspy.LOCAL_CAP]),
                int(row["args"]["line"] or 0),
            )
            for row in rows
            if row["ph"] in ("B", "E")
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    mark = f"thread ({pid})"
    main = next((event[1] for event in events if event[3].startswith(mark)), None)
    stack: List[Tuple[str, str, int]] = []
    numbers: Dict[Stack, int] = {}
    spells: List[Tuple[float, float, int]] = []
    since = 0
    for at, thread, phase, name, source, line in events:
        if thread != main:
            continue
        if at > since and len(stack) > 1 and len(spells) < SPELLS_CAP:
            seen = tuple(stack[1:])
            if seen in numbers or len(numbers) < STACKS_CAP:
                number = numbers.setdefault(seen, len(numbers))
                spells.append((round(since / 1e6, 4), round(at / 1e6, 4), number))
        since = at
        if phase == "B":
            stack.append((name, source, line))
        elif stack:
            stack.pop()
    return list(numbers), spells
