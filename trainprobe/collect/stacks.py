"""Python stacks of processes side by side, and stacks with C frames one at a time, by py-spy."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any, Dict, List, Optional, Sequence, Tuple

from trainprobe.case import Case
from trainprobe.collect import cgroup, procfs, pyspy
from trainprobe.collect.look_results import LookResult, record, refused, side_by_side, timed
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Evidence, LookOutcome
from trainprobe.system.run import Ran, run

# A blocking dump needs the target to stop for it. A process that is stopped already, or asleep in
# the kernel, cannot.
CANNOT_PAUSE = frozenset("TtD")
AT_ONCE = 16
COMPLAINT_BYTES = 65536
LEAST_HEADROOM_BYTES = 2**30
# To shorten names py-spy looks for a package in each folder above a source file, and hangs where
# that lies on a mount that no longer answers. The frames have the whole name either way.
FILES_ALONE = "--full-filenames"
_native_lock = threading.Lock()


def look_at_stacks(
    case: Case,
    cell: str,
    members: Sequence[Member],
    number: int,
    *,
    deadline_s: float = 5.0,
    at_once: int = AT_ONCE,
) -> List[Evidence]:
    """Take one dump of every member, at most `at_once` at the same time; one `stacks.python` record
    each, in the order given.

    A process whose main thread sleeps, and slept on meanwhile, is read without a pause: nothing
    moved. One that runs is paused, for under 3 ms where py-spy has a CPU for itself and for some 5
    ms (31 at most, seen at a load of 30 on two CPUs) otherwise: tests/bench/pause.py measures it.
    """
    looks = [partial(read_stacks, member, number, deadline_s) for member in members]
    results = side_by_side(looks, deadline_s + 0.5, at_once)
    return [
        record(case, "stacks.python", result, subject=member.subject, cell=cell, source="py-spy")
        for member, result in zip(members, results)
    ]


def read_stacks(member: Member, number: int, deadline_s: float) -> LookResult:
    """One dump of one process, without a case."""
    ends = time.monotonic() + deadline_s
    base = _base(member, number)
    path, reason = _find(member)
    if path is None:
        return refused("unavailable", reason, **base)
    now = procfs.stat(member.pid)
    state = now.state if now is not None else ""
    attempts = (
        (True,) if state in CANNOT_PAUSE else (True, False) if state == "S" else (False, True)
    )
    outcome: LookOutcome = "timed_out"
    slept_through: Optional[LookResult] = None
    reason = f"no time was left to look at process {member.pid}"
    for place, nonblocking in enumerate(attempts):
        left_s = ends - time.monotonic()
        if left_s <= 0.05:
            break
        base["nonblocking"] = nonblocking
        # The first attempt must leave time for the second, which needs no help from the target.
        allowed_s = left_s if place == len(attempts) - 1 else left_s * 0.6
        switches = _switches(member.pid)
        ran = dump(path, member.pid, allowed_s, ["--nonblocking"] if nonblocking else [])
        result = understand(ran, member, base)
        if (
            place == 0
            and nonblocking
            and len(attempts) > 1
            and (result.outcome == "partial" or switches != _switches(member.pid))
        ):
            # Its main thread ran meanwhile, so what was read of it may be of two moments: once
            # more, with a pause.
            slept_through = result if result.outcome in ("ok", "partial") else None
            outcome, reason = result.outcome, result.reason
            continue
        if result.outcome in ("ok", "partial"):
            return _with_lock_paths(path, member, result, ends - time.monotonic())
        outcome, reason = result.outcome, result.reason
        if outcome in ("denied", "unavailable"):
            break
    return slept_through or refused(outcome, reason, **base)


def _switches(pid: int) -> str:
    """How often the main thread was switched out, as the kernel prints it; empty when gone."""
    fields = procfs.status_fields(procfs.read_page(f"/proc/{pid}/task/{pid}/status") or "")
    return (
        f"{fields.get('voluntary_ctxt_switches', '')}"
        f" {fields.get('nonvoluntary_ctxt_switches', '')}"
    )


def dump(path: str, pid: int, timeout_s: float, options: Sequence[str] = ()) -> Ran:
    """Run py-spy; one that does not know how to leave files alone, without that."""
    ends = time.monotonic() + timeout_s
    for without_files in ((FILES_ALONE,), ()):
        ran = run(
            [path, "dump", "--json", *without_files, "--pid", str(pid), *options],
            timeout_s=max(0.05, ends - time.monotonic()),
            output_cap_bytes=pyspy.OUTPUT_CAP_BYTES,
        )
        if pyspy.unknown_option(ran.stderr[:COMPLAINT_BYTES].decode("utf-8", "replace")) != (
            FILES_ALONE
        ):
            break
    return ran


def understand(ran: Ran, member: Member, base: dict[str, Any]) -> LookResult:
    """Turn what py-spy did into a look."""
    pid, ended = member.pid, ran.ended
    if ended.how in ("timed_out", "unkillable"):
        return refused(
            "timed_out",
            f"py-spy did not finish on process {pid} within {ended.took_s:.1f} s",
            **base,
        )
    if ended.how in ("not_started", "not_run"):
        return refused(
            "unavailable",
            f"py-spy could not be started: {ended.reason or 'no reason given'}",
            **base,
        )
    if ended.how != "exited" or ended.code != 0:
        outcome, reason = pyspy.why_failed(
            pid, ran.stderr[:COMPLAINT_BYTES].decode("utf-8", "replace"), member.started_ticks
        )
        return refused(outcome, reason, **base)
    parsed = pyspy.parse(ran.stdout, pid)
    if parsed is None:
        why = (
            f"its answer is larger than {pyspy.OUTPUT_CAP_BYTES} bytes"
            if ran.cut
            else "its answer is no list of threads in JSON"
        )
        return refused("crashed", f"py-spy's look at process {pid} cannot be used: {why}", **base)
    now = procfs.stat(pid)
    if now is not None and member.started_ticks not in (None, now.started_ticks):
        return refused(
            "unavailable",
            f"process {pid} ended during the look and its number belongs to another process now",
            **base,
        )
    data = {**base, "threads": parsed.threads}
    if parsed.cut_threads or parsed.cut_frames:
        data.update(cut_threads=parsed.cut_threads, cut_frames=parsed.cut_frames)
    return LookResult(data, "partial", parsed.flaw) if parsed.flaw else LookResult(data)


def _with_lock_paths(path: str, member: Member, result: LookResult, left_s: float) -> LookResult:
    """Look again, with locals, where a frame waits for a lock file of unknown path."""
    threads = result.data["threads"]
    if left_s < 0.2 or not pyspy.wants_locals(threads):
        return result
    # Three times --locals, since py-spy cuts a value at 128 characters otherwise.
    options: Tuple[str, ...] = (
        ("-lll", "--nonblocking") if result.data["nonblocking"] else ("-lll",)
    )
    again = understand(
        dump(path, member.pid, left_s, options),
        member,
        {key: item for key, item in result.data.items() if key != "threads"},
    )
    return again if again.outcome == "ok" else result


def look_at_native_stacks(
    case: Case, cell: str, member: Member, number: int, *, deadline_s: float = 10.0
) -> Evidence:
    """Record one `stacks.native`; native frames have a library as `module`.

    A native look reads the symbols of every library of the target: it takes 105 MB of memory and
    froze a gloo rank for 0.33 s. So it is for a frozen suspect whose Python frames do not decide,
    and only with memory to spare.
    """
    result = timed(lambda: _read_native_stacks(member, number, deadline_s))
    return record(
        case, "stacks.native", result, subject=member.subject, cell=cell, source="py-spy --native"
    )


def _read_native_stacks(member: Member, number: int, deadline_s: float) -> LookResult:
    base = _base(member, number)
    path, reason = _find(member)
    if path is None:
        return refused("unavailable", reason, **base)
    now = procfs.stat(member.pid)
    if now is not None and now.state in CANNOT_PAUSE:
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
    if not _native_lock.acquire(timeout=deadline_s):
        return refused("timed_out", "another native look was still under way", **base)
    try:
        ran = dump(path, member.pid, deadline_s, ["--native"])
        # py-spy holds the process for a part of its own life; reading the symbols before that does
        # not stop anybody.
        return understand(ran, member, {**base, "paused_at_most_s": round(ran.ended.took_s, 3)})
    finally:
        _native_lock.release()


def _base(member: Member, number: int) -> Dict[str, Any]:
    return {
        "look": number,
        "pid": member.pid,
        "role": member.role,
        "nonblocking": False,
        "threads": [],
    }


def _find(member: Member) -> Tuple[Optional[str], str]:
    """The path of py-spy, or None and why the member cannot be looked at."""
    path, reason = pyspy.find()
    gone = procfs.gone(member.pid, member.started_ticks) if path is not None else ""
    return (None, gone) if gone else (path, reason)
