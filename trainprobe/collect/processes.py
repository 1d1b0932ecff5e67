"""What /proc says of processes and their threads: state, where they sleep in the kernel and for how long, memory, descriptors."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Optional, Sequence

from trainprobe.case import Case
from trainprobe.collect import permission, procfs
from trainprobe.collect.members import Member
from trainprobe.collect.seen import Seen, record, refused, side_by_side
from trainprobe.model.evidence import Evidence

THREADS_CAP = 512
CMDLINE_CAP = 4096


def look_at_processes(case: Case, cell: str, members: Sequence[Member], number: int, *, deadline_s: float = 2.0) -> List[Evidence]:
    """One `process` record per member, in the order given."""
    seen = side_by_side([_look(member, number) for member in members], deadline_s)
    return [record(case, "process", one, subject=member.subject, cell=cell, source="/proc") for member, one in zip(members, seen)]


def read_process(member: Member, number: int) -> Seen:
    """One look at one process, without a case. What the kernel hides is None, and the look is partial."""
    pid = member.pid
    missing = procfs.missing()
    if missing:
        return refused("unavailable", missing, look=number, pid=pid, role=member.role)
    now = procfs.stat(pid)
    # A zombie is worth telling of: it is still a member of the job, with a state and a parent that has not waited for it.
    if now is None or (member.started_ticks is not None and now.started_ticks != member.started_ticks):
        return refused("unavailable", procfs.gone(pid, member.started_ticks) or f"process {pid} is gone", look=number, pid=pid, role=member.role)
    status = procfs.status_fields(procfs.read_or_none(f"/proc/{pid}/status") or "")
    threads, cut_threads = _threads(pid)
    fds = _descriptors(pid)
    data: Dict[str, Any] = {
        "look": number,
        "pid": pid,
        "ppid": now.ppid,
        "role": member.role,
        "state": now.state,
        "started_ticks": now.started_ticks,
        "cmdline": _cmdline(pid, now, threads),
        "tracer_pid": _number(status.get("TracerPid", "")) or 0,
        "threads": threads,
        "rss_bytes": (_number(status.get("VmRSS", "0 kB").split()[0]) or 0) * 1024,
        "fds": fds,
        "nofile_soft": nofile_soft(procfs.read_or_none(f"/proc/{pid}/limits") or ""),
    }
    if cut_threads:
        data["cut_threads"] = cut_threads
    if now.state in procfs.ENDED_STATES:
        return Seen(data)
    if fds is None:
        return Seen(data, "partial", f"descriptors and system calls are hidden: {permission.why_refused(pid)}")
    return Seen(data)


def parse_exec_start_ms(sched: str) -> Optional[float]:
    """`se.exec_start` of /proc/PID/sched in ms: when the thread last ran, on the scheduler's clock."""
    for line in sched.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "se.exec_start":
            try:
                return float(value)
            except ValueError:
                return None
    return None


def nofile_soft(limits: str) -> Optional[int]:
    """The soft limit of open files from /proc/PID/limits; None when unlimited or unknown."""
    for line in limits.splitlines():
        if line.startswith("Max open files"):
            return _number(line[len("Max open files") :].split()[0])
    return None


def _threads(pid: int) -> tuple[List[Dict[str, Any]], int]:
    try:
        tids = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task") if name.isdigit())
    except OSError:
        return [], 0
    threads = [_thread(pid, tid) for tid in tids[:THREADS_CAP]]
    return [thread for thread in threads if thread is not None], max(0, len(tids) - THREADS_CAP)


def _thread(pid: int, tid: int) -> Optional[Dict[str, Any]]:
    now = procfs.stat(pid, tid)
    if now is None:
        return None
    folder = f"/proc/{pid}/task/{tid}"
    status = procfs.status_fields(procfs.read_or_none(f"{folder}/status") or "")
    wchan = procfs.read_or_none(f"{folder}/wchan") or ""
    return {
        "tid": tid,
        "name": now.name,
        "state": now.state,
        "wchan": "" if wchan == "0" else wchan,
        "syscall": (procfs.read_or_none(f"{folder}/syscall") or "").strip(),
        "cpu_ticks": now.cpu_ticks,
        "voluntary": _number(status.get("voluntary_ctxt_switches", "")),
        "involuntary": _number(status.get("nonvoluntary_ctxt_switches", "")),
        "asleep_s": _asleep_s(folder, now.state),
    }


def _asleep_s(folder: str, state: str) -> Optional[float]:
    """How long ago the thread last ran: our own last run, which is now, minus its own. None where the kernel has no sched file."""
    if state == "R":
        return 0.0
    last_ran_ms = parse_exec_start_ms(procfs.read_or_none(f"{folder}/sched") or "")
    if not last_ran_ms:
        return None
    now_ms = parse_exec_start_ms(procfs.read_or_none("/proc/thread-self/sched") or "")
    return None if not now_ms else round(max(0.0, (now_ms - last_ran_ms) / 1000), 3)


def _cmdline(pid: int, now: procfs.Stat, threads: List[Dict[str, Any]]) -> str:
    """The command line, or `[name]`. Reading it needs the target's memory map, whose lock a thread in state D may hold for ever."""
    if now.state in procfs.ENDED_STATES or any(thread["state"] == "D" for thread in threads):
        return f"[{now.name}]"
    raw = procfs.read_or_none(f"/proc/{pid}/cmdline") or ""
    return raw.replace("\0", " ").strip()[:CMDLINE_CAP] or f"[{now.name}]"


def _descriptors(pid: int) -> Optional[int]:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


def _number(text: str) -> Optional[int]:
    return int(text) if text.isdigit() else None


def _look(member: Member, number: int) -> Callable[[], Seen]:
    return lambda: read_process(member, number)
