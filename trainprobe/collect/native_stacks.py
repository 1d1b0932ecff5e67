"""Stacks with their C frames, for one process at a time.

A native look reads the symbols of every library of the target: it takes 105 MB of memory and froze
a gloo rank for 0.33 s. So it is for a frozen suspect whose Python frames do not decide, and only
with memory to spare.
"""

from __future__ import annotations

import threading

from trainprobe.case import Case
from trainprobe.collect import cgroup, procfs, pyspy, stacks
from trainprobe.collect.look_results import LookResult, record, refused, timed
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Evidence

LEAST_HEADROOM_BYTES = 2**30
_one_at_a_time = threading.Lock()


def look_at_native_stacks(
    case: Case, cell: str, member: Member, number: int, *, deadline_s: float = 10.0
) -> Evidence:
    """Record one `stacks.native`; native frames have a library as `module`."""
    result = timed(lambda: read_native_stacks(member, number, deadline_s))
    return record(
        case, "stacks.native", result, subject=member.subject, cell=cell, source="py-spy --native"
    )


def read_native_stacks(member: Member, number: int, deadline_s: float) -> LookResult:
    """One native dump of one process, without a case."""
    base = {
        "look": number,
        "pid": member.pid,
        "role": member.role,
        "nonblocking": False,
        "threads": [],
    }
    path, reason = pyspy.find()
    if path is None:
        return refused("unavailable", reason, **base)
    gone = procfs.gone(member.pid, member.started_ticks)
    if gone:
        return refused("unavailable", gone, **base)
    now = procfs.stat(member.pid)
    if now is not None and now.state in stacks.CANNOT_PAUSE:
        return refused(
            "unavailable",
            f"process {member.pid} is in state {now.state} and cannot be paused, which a native"
            " look needs",
            **base,
        )
    headroom = cgroup.headroom_bytes(member.pid)
    if headroom is None or headroom < LEAST_HEADROOM_BYTES:
        left = "an unknown amount" if headroom is None else f"{headroom / 2**20:.0f} MiB"
        return refused(
            "unavailable",
            f"a native look needs 1024 MiB of free memory beside the job and {left} is left",
            **base,
        )
    if not _one_at_a_time.acquire(timeout=deadline_s):
        return refused("timed_out", "another native look was still under way", **base)
    try:
        ran = stacks.dump(path, member.pid, deadline_s, ["--native"])
        # py-spy holds the process for a part of its own life; reading the symbols before that does
        # not stop anybody.
        return stacks.understand(
            ran, member, {**base, "paused_at_most_s": round(ran.ended.took_s, 3)}
        )
    finally:
        _one_at_a_time.release()
