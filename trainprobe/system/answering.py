"""Whether the file system of a path answers, asked of a child before this program touches it.

Who waits in the kernel for a server that is silent cannot be killed. A thread of ours that does
would keep this program from ending.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from typing import Dict, Sequence, Set, Tuple

from trainprobe.mount_table import MountRow, of_path, table_of

ANSWER_S = 0.5
FRESH_S = 10.0  # an answer holds for so long, and so does silence
MOST_LINKS = 40  # as in the kernel
# A refusal is an answer: the server is there.
ASK = """
import os, sys
try:
    os.statvfs(sys.argv[1])
    with os.scandir(sys.argv[1]) as names:
        next(names, None)
except OSError:
    pass
os.write(1, b"answered")
"""
_ROOT = re.compile(r"/proc/(\d{1,10})/root(?=/|$)")
_lock = threading.Lock()
_asked: Dict[str, Tuple[float, str]] = {}


def silent(path: str) -> str:
    """Say why `path` must not be touched: its file system gives no answer. "" where it does, or
    is a local one.
    """
    inside = _ROOT.match(path)
    pid = inside.group(1) if inside else "self"
    rows = table_of(pid)
    if not any(row.remote for row in rows):
        return ""
    path = os.path.abspath((path[inside.end() :] if inside else path) or "/")
    return _silent_on_the_way("" if _sees_ours(pid) else f"/proc/{pid}/root", path, rows)


def real_path(path: str) -> str:
    """Like os.path.realpath; a path whose file system gives no answer as it is written."""
    return os.path.abspath(path) if silent(path) else os.path.realpath(path)


def _sees_ours(pid: str) -> bool:
    """Whether a process sees the same mounts as we do, by the same names."""
    try:
        spaces = {os.readlink(f"/proc/{each}/ns/mnt") for each in (pid, "self")}
        return len(spaces) == 1 and os.readlink(f"/proc/{pid}/root") == "/"
    except OSError:
        return False


def _silent_on_the_way(root: str, path: str, rows: Sequence[MountRow]) -> str:
    """Ask each mount on the way to `path` for which another host or program answers, before
    anything on it is touched.
    """
    at, left, links = "/", path.split("/"), 0
    answered: Set[str] = set()
    while left:
        part = left.pop(0)
        if part in ("", "."):
            continue
        at = os.path.dirname(at) if part == ".." else os.path.join(at, part)
        mount = of_path(rows, at)
        if mount is not None and mount.remote and mount.point not in answered:
            said = _ask(root + mount.point)
            if said:
                return said
            answered.add(mount.point)
        try:
            leads_to = os.readlink(root + at)
        except OSError:
            continue
        links += 1
        if links > MOST_LINKS:
            break
        at = "/" if leads_to.startswith("/") else os.path.dirname(at)
        left = [*leads_to.split("/"), *left]
    return ""


def _ask(point: str) -> str:
    # starting children needs ctypes, which judging a saved case must not load
    from trainprobe.system.run import run

    with _lock:  # several looks at once ask once
        at, said = _asked.get(point, (0.0, ""))
        if not at or time.monotonic() - at > FRESH_S:
            ran = run(
                [sys.executable, "-I", "-S", "-B", "-c", ASK, point],
                timeout_s=ANSWER_S,
                cwd="/",
                kill_s=0.1,
            )
            said = (
                ""
                if ran.stdout
                else f"the file system at {point} gives no answer, so nothing on it was touched"
            )
            _asked[point] = time.monotonic(), said
    return said
