"""Why the kernel refuses to let us look into a process, and what to type so that it lets us."""

from __future__ import annotations

from typing import Optional

from trainprobe.collect import procfs

CAP_SYS_PTRACE = 19  # linux/capability.h
YAMA = "/proc/sys/kernel/yama/ptrace_scope"


def why_refused(pid: int) -> str:
    """The most likely reason, with its remedy (ptrace(2), "access mode checking")."""
    own_status = procfs.status_fields(procfs.read_or_none("/proc/self/status") or "")
    theirs = procfs.status_fields(procfs.read_or_none(f"/proc/{pid}/status") or "")
    scope = procfs.number((procfs.read_or_none(YAMA) or "").strip())
    return explain(
        pid,
        own_status.get("CapEff", ""),
        _uid(own_status.get("Uid", "")),
        _uid(theirs.get("Uid", "")),
        procfs.number(theirs.get("TracerPid", "")),
        scope,
    )


def explain(
    pid: int,
    effective: str,
    our_uid: Optional[int],
    their_uid: Optional[int],
    tracer_pid: Optional[int],
    scope: Optional[int],
) -> str:
    """The same from plain values. `effective` is CapEff as /proc/PID/status prints it, `scope` is
    kernel.yama.ptrace_scope.

    It names no pid where it is the same for all processes of a job, so that a report says it once.
    """
    capable = bool(int(effective or "0", 16) >> CAP_SYS_PTRACE & 1) if _is_hex(effective) else False
    if tracer_pid:
        return (
            f"process {pid} is already traced by process {tracer_pid}; detach that debugger first"
        )
    if scope == 3:
        return (
            "kernel.yama.ptrace_scope is 3, which forbids looking into any process until the next"
            " boot"
        )
    if scope == 2 and not capable:
        return (
            "kernel.yama.ptrace_scope is 2: only an administrator may look; run trainprobe as root,"
            " or: sudo sysctl kernel.yama.ptrace_scope=0"
        )
    if our_uid != 0 and their_uid is not None and our_uid != their_uid and not capable:
        owner = user_name(their_uid)
        return (
            f"the process belongs to {owner} and we are {user_name(our_uid)}; run trainprobe as"
            f" {owner}{'' if owner == 'root' else ' or as root'}"
        )
    if scope == 1 and not capable:
        return (
            "kernel.yama.ptrace_scope is 1: a process may look only into its own descendants; as"
            " root, or: sudo sysctl kernel.yama.ptrace_scope=0"
        )
    if not capable:
        return (
            "looking into the process needs the capability SYS_PTRACE; start the container with"
            " --cap-add=SYS_PTRACE (Kubernetes: capabilities.add)"
        )
    return (
        "the kernel refused to let us look into the process; a security module or another user"
        " namespace may be why"
    )


def user_name(uid: Optional[int]) -> str:
    """`alice`, or `uid 1000` where the number has no name."""
    if uid is None:
        return "an unknown user"
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError, OSError, OverflowError):
        return f"uid {uid}"


def _uid(field: str) -> Optional[int]:
    """The effective uid: second of the four numbers of `Uid:`."""
    numbers = field.split()
    return procfs.number(numbers[1]) if len(numbers) > 1 else None


def _is_hex(text: str) -> bool:
    return bool(text) and all(digit in "0123456789abcdefABCDEF" for digit in text)
