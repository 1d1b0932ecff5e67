"""Whether one process may look into another, tried on processes of our own: a child, and a process
that is no descendant of the one that looks.

The second is the case of an attach to a running job. Yama's scope 1 allows the first and not the
second (Documentation/admin-guide/LSM/Yama.rst).
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import signal
import time
from typing import Any, Dict

from _shared import kernel_files

PTRACE_SEIZE = 0x4206
CAP_SYS_PTRACE = 19
WORD = ctypes.c_ulong


def tried() -> Dict[str, Any]:
    """{child: "" or the error's name, other: the same}. Call it in a process that may be killed."""
    target = os.fork()
    if not target:  # it only sleeps, and ends by itself when nobody kills it
        time.sleep(20)
        os._exit(0)
    try:
        by_parent = seize(target)
        reading, writing = os.pipe()
        tracer = os.fork()
        if not tracer:
            # our parent is no descendant of ours; as we are not traced it may be looked at
            second = seize(os.getppid())
            os.write(writing, second.encode() or b"-")
            os._exit(0)
        os.close(writing)
        by_other = os.read(reading, 100).decode()
        os.waitpid(tracer, 0)
    finally:
        os.kill(target, signal.SIGKILL)
        os.waitpid(target, 0)
    return {"child": by_parent, "other": "" if by_other == "-" else by_other or "EPERM"}


def seize(pid: int) -> str:
    """Seize a process, which does not stop it, and let it go by our own end; "" or the error's
    name. A child must be killed by its caller.
    """
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.restype = ctypes.c_long
    done = library.ptrace(WORD(PTRACE_SEIZE), WORD(pid), None, None)
    return "" if done == 0 else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


def ptrace_limits(root: str) -> Dict[str, Any]:
    """{scope: Yama's number or null, capable: has CAP_SYS_PTRACE, seccomp: a filter is on}."""
    status = kernel_files.read(root, "/proc/self/status")
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    seccomp = re.search(r"^Seccomp:\s*(\d)", status, re.MULTILINE)
    return {
        "scope": kernel_files.number(root, "/proc/sys/kernel/yama/ptrace_scope"),
        "capable": bool(effective and int(effective.group(1), 16) >> CAP_SYS_PTRACE & 1),
        "seccomp": bool(seccomp and seccomp.group(1) == "2"),
    }
