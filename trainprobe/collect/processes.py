"""Processes and threads by /proc: state, wait, its age, memory, descriptors."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any, Dict, List, Optional, Sequence

from trainprobe.case import Case
from trainprobe.collect import cgroup, permission, procfs
from trainprobe.collect.blocked_calls import read_blocked_call
from trainprobe.collect.look_results import LookResult, record, refused, side_by_side
from trainprobe.collect.members import Member
from trainprobe.collect.scheduler_clocks import SchedulerClocks
from trainprobe.model.evidence import Evidence

THREADS_CAP = 512
STACK_CAP = 64
CLOCK_HZ = os.sysconf("SC_CLK_TCK")
SCHED_NAMES = ("se.exec_start", "nr_voluntary_switches", "nr_involuntary_switches")
IO_NAMES = ("rchar", "wchar", "read_bytes", "write_bytes")
CMDLINE_CAP = 4096


def look_at_processes(
    case: Case, cell: str, members: Sequence[Member], number: int, *, deadline_s: float = 2.0
) -> List[Evidence]:
    """One `process` record per member, in the order given."""
    results = side_by_side(
        [partial(read_process, member, number) for member in members], deadline_s
    )
    return [
        record(case, "process", result, subject=member.subject, cell=cell, source="/proc")
        for member, result in zip(members, results)
    ]


def read_process(member: Member, number: int) -> LookResult:
    """One look at one process; partial, with None, where the kernel hides something."""
    pid = member.pid
    base = {"look": number, "pid": pid, "role": member.role}
    missing = procfs.missing()
    if missing:
        return refused("unavailable", missing, **base)
    now = procfs.stat(pid)
    # A zombie is worth telling of: it is still a member of the job, with a state and a parent that
    # has not waited for it.
    if now is None or (
        member.started_ticks is not None and now.started_ticks != member.started_ticks
    ):
        gone = procfs.gone(pid, member.started_ticks) or f"process {pid} is gone"
        return refused("unavailable", gone, **base)
    status = procfs.status_fields(procfs.read_page(f"/proc/{pid}/status") or "")
    threads, cut_threads = _threads(pid)
    fds = _descriptors(pid)
    data: Dict[str, Any] = {
        **base,
        "ppid": now.ppid,
        "forked": _forked(now),
        "state": now.state,
        "started_ticks": now.started_ticks,
        "cmdline": _cmdline(pid, now, threads),
        "tracer_pid": procfs.number(status.get("TracerPid", "")) or 0,
        "threads": threads,
        "rss_bytes": (procfs.number(status.get("VmRSS", "0 kB").split()[0]) or 0) * 1024,
        "fds": fds,
        "nofile_soft": nofile_soft(procfs.read_page(f"/proc/{pid}/limits") or ""),
        "cpu_ticks": now.cpu_ticks,
        "ended_children_ticks": now.ended_children_ticks,
        "clock_hz": CLOCK_HZ,
        "minflt": now.minflt,
        "majflt": now.majflt,
        "io": parse_io(procfs.read_page(f"/proc/{pid}/io") or ""),
        "nspid": [int(word) for word in status.get("NSpid", "").split() if word.isdecimal()],
        "uid": procfs.number(status.get("Uid", "").split("\t")[0]),
        "oom_score_adj": _signed((procfs.read_page(f"/proc/{pid}/oom_score_adj") or "").strip()),
        "age_s": round(
            max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - now.started_ticks / CLOCK_HZ), 2
        ),
    }
    if cut_threads:
        data["cut_threads"] = cut_threads
    if now.state in procfs.ENDED_STATES:
        return LookResult(data)
    # docker pause, scontrol suspend: with version 2 the state itself does not tell.
    data["frozen"] = cgroup.frozen(cgroup.find(pid))
    if fds is None:
        why = f"descriptors and system calls are hidden: {permission.why_refused(pid)}"
        return LookResult(data, "partial", why)
    return LookResult(data)


def _forked(now: procfs.Stat) -> Optional[bool]:
    """Whether its parent forked it and it has run no other program since: then both have their
    stacks at one address, which the kernel chooses at random for each program that it starts. None
    where it may not be seen.
    """
    above = procfs.stat(now.ppid) if now.ppid > 1 else None
    if above is None or above.start_stack is None or now.start_stack is None:
        return None
    return above.start_stack == now.start_stack


def parse_sched(sched: str) -> Dict[str, float]:
    """The numbers of /proc/PID/sched; `se.exec_start` is when the thread last ran (ms)."""
    found: Dict[str, float] = {}
    # Looked for by name, since a kernel that keeps scheduler statistics prints thirty lines in
    # between.
    for name in SCHED_NAMES:
        _, there, rest = sched.partition("\n" + name)
        try:
            if there:
                found[name] = float(rest[: rest.find("\n")].partition(":")[2])
        except ValueError:
            continue
    return found


def parse_io(text: str) -> Optional[Dict[str, int]]:
    """/proc/PID/io (proc(5)): rchar and wchar count what passed through read and write, the
    others what went to a device. None when hidden.
    """
    fields = procfs.status_fields(text)
    found = {name: int(fields[name]) for name in IO_NAMES if fields.get(name, "").isdecimal()}
    return found if len(found) == len(IO_NAMES) else None


def nofile_soft(limits: str) -> Optional[int]:
    """The soft limit of open files from /proc/PID/limits; None when unlimited or unknown."""
    for line in limits.splitlines():
        if line.startswith("Max open files"):
            return procfs.number(line[len("Max open files") :].split()[0])
    return None


def _threads(pid: int) -> tuple[List[Dict[str, Any]], int]:
    try:
        tids = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task") if name.isdecimal())
    except OSError:
        return [], 0
    threads = [_thread(pid, tid) for tid in tids[:THREADS_CAP]]
    return [thread for thread in threads if thread is not None], max(0, len(tids) - THREADS_CAP)


def _own_last_run_ms() -> Optional[float]:
    return parse_sched(procfs.read_page("/proc/thread-self/sched") or "").get("se.exec_start")


CLOCKS = SchedulerClocks(_own_last_run_ms)


def _thread(pid: int, tid: int) -> Optional[Dict[str, Any]]:
    now = procfs.stat(pid, tid)
    if now is None:
        return None
    folder = f"/proc/{pid}/task/{tid}"
    sched = parse_sched(procfs.read_page(f"{folder}/sched") or "")
    voluntary = sched.get("nr_voluntary_switches")
    involuntary = sched.get("nr_involuntary_switches")
    if voluntary is None:
        status = procfs.status_fields(procfs.read_page(f"{folder}/status") or "")
        voluntary = procfs.number(status.get("voluntary_ctxt_switches", ""))
        involuntary = procfs.number(status.get("nonvoluntary_ctxt_switches", ""))
    wchan = procfs.read_page(f"{folder}/wchan") or ""
    thread = {
        "tid": tid,
        "name": now.name,
        "state": now.state,
        "wchan": "" if wchan == "0" else wchan,
        "syscall": (procfs.read_page(f"{folder}/syscall") or "").strip(),
        "cpu_ticks": now.cpu_ticks,
        "voluntary": None if voluntary is None else int(voluntary),
        "involuntary": None if involuntary is None else int(involuntary),
        "asleep_s": _asleep_s(sched.get("se.exec_start"), now),
        "cpu_allowed": _cpu_allowed(tid),
        "queued_ns": procfs.parse_schedstat(procfs.read_page(f"{folder}/schedstat") or "")[1],
    }
    if tid == pid:
        thread["io"] = parse_io(procfs.read_page(f"{folder}/io") or "")
    call = read_blocked_call(pid, str(thread["syscall"])) if tid == pid else None
    if call is not None:
        thread["call"] = call
    # Root alone may read it, and it costs the target's scheduler a lock: so only where it may
    # decide.
    if tid == pid or now.state == "D":
        stack = parse_kernel_stack(procfs.read_page(f"{folder}/stack") or "")
        if stack:
            thread["kernel_stack"] = stack
    return thread


def parse_kernel_stack(text: str) -> List[str]:
    """`[<0>] futex_do_wait+0x38/0x70` for each frame, innermost first: the names alone."""
    names = (
        line.partition("] ")[2].split("+")[0].strip() for line in text.splitlines()[:STACK_CAP]
    )
    return [name for name in names if name]


def _asleep_s(last_ran_ms: Optional[float], now: procfs.Stat) -> Optional[float]:
    """How long ago the thread last ran. None where the kernel has no sched file."""
    if now.state == "R":
        return 0.0
    ago_s = CLOCKS.ago_s(last_ran_ms, now.cpu) if last_ran_ms else None
    return None if ago_s is None else round(ago_s, 3)


def _cpu_allowed(tid: int) -> Optional[int]:
    """How many CPUs the thread may run on (affinity and cpuset)."""
    try:
        return len(os.sched_getaffinity(tid))
    except (OSError, AttributeError):
        return None


def _cmdline(pid: int, now: procfs.Stat, threads: List[Dict[str, Any]]) -> str:
    """The command line, or `[name]` where reading it could hang on a thread in state D."""
    if now.state in procfs.ENDED_STATES or any(thread["state"] == "D" for thread in threads):
        return f"[{now.name}]"
    raw = procfs.read_or_none(f"/proc/{pid}/cmdline") or ""
    return raw.replace("\0", " ").strip()[:CMDLINE_CAP] or f"[{now.name}]"


def _descriptors(pid: int) -> Optional[int]:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


def _signed(text: str) -> Optional[int]:
    return procfs.number(text) if text[:1] != "-" else -(procfs.number(text[1:]) or 0)
