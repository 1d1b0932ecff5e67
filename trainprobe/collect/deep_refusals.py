"""Why `--deep` leaves a process alone: one sentence, before anything was touched."""

from __future__ import annotations

import time
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from trainprobe.collect import cgroup, procfs, pyspy, stacks
from trainprobe.collect.exchange import ENVIRON_BYTES
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Evidence

# A dump of 2000 entries with their frames takes some 20 MB for a moment, in the job.
LEAST_HEADROOM_BYTES = 256 * 2**20
RECORDER_SIZES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
GIL_LOOKS, GIL_PAUSE_S = 3, 0.03


def why_not(member: Member, evidence: Sequence[Evidence] = ()) -> str:
    """Why code should not be run in this process now, or an empty string."""
    pid = member.pid
    gone = procfs.gone(pid, member.started_ticks)
    if gone:
        return gone
    now = procfs.stat(pid)
    if now is None or now.state in "DTt":
        return f"process {pid} is in state {now.state if now else '?'}: it could not run anything"
    tracer = procfs.status_fields(procfs.read_page(f"/proc/{pid}/status") or "").get(
        "TracerPid", "0"
    )
    if tracer != "0":
        return f"process {pid} is already traced by process {tracer}"
    environ = environment(pid)
    for name in RECORDER_SIZES:
        if environ.get(name, "").strip() == "0":
            return (
                f"the flight recorder of process {pid} is off ({name}=0), so there is nothing to"
                " ask for"
            )
    headroom = cgroup.headroom_bytes(pid)
    if headroom is not None and headroom < LEAST_HEADROOM_BYTES:
        return (
            f"{headroom / 2**20:.0f} MiB of memory are left beside the job, and the dump may need"
            f" {LEAST_HEADROOM_BYTES // 2**20} MiB for a moment"
        )
    return _gil(pid, evidence)


def _gil(pid: int, evidence: Sequence[Evidence]) -> str:
    """The thread that holds the GIL at the same place in all looks, some more taken now."""
    path, _ = pyspy.find()
    held = _owner(
        next(
            (
                record.data.get("threads")
                for record in reversed(evidence)
                if record.kind == "stacks.python" and record.data.get("pid") == pid
            ),
            None,
        )
    )
    for place in range(GIL_LOOKS):
        if path is None:
            break
        ran = stacks.dump(path, pid, 1.0, ["--nonblocking"])
        parsed = pyspy.parse(ran.stdout, pid)
        owner = _owner(parsed.threads if parsed is not None else None)
        if owner is None or (held is not None and owner != held):
            return ""
        held = owner
        time.sleep(GIL_PAUSE_S if place + 1 < GIL_LOOKS else 0)
    return (
        f"thread {held[0]} of process {pid} holds the interpreter lock at {held[1]}:{held[2]} and"
        " does not let go"
        if held is not None
        else ""
    )


def _owner(threads: Any) -> Optional[Tuple[Any, str, int]]:
    """Thread, file and line of who holds the interpreter lock; None when nobody does."""
    for thread in threads if isinstance(threads, (list, tuple)) else ():
        if isinstance(thread, Mapping) and thread.get("owns_gil") is True:
            frame = (thread.get("frames") or [{}])[0]
            return (
                thread.get("os_thread_id"),
                str(frame.get("file", "")),
                int(frame.get("line") or 0),
            )
    return None


def environment(pid: int) -> Dict[str, str]:
    """The environment that the process was started with; empty where it is hidden."""
    try:
        text = procfs.read(f"/proc/{pid}/environ", ENVIRON_BYTES)
    except OSError:
        return {}
    return {
        name: value
        for name, equals, value in (entry.partition("=") for entry in text.split("\0"))
        if equals
    }
