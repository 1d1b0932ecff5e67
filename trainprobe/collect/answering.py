"""Whether the file system of a path answers, asked of a child before this program touches it.

Who waits in the kernel for a server that is silent cannot be killed. A thread of ours that does
would keep this program from ending.
"""

from __future__ import annotations

import os
import re
import threading
import time
from typing import Dict, Optional, Sequence, Tuple

from trainprobe.collect.child_programs import json_lines, run_child
from trainprobe.collect.mount_table import MountRow, of_path, table_of

ANSWER_S = 0.5
FRESH_S = 10.0  # an answer holds for so long, and so does silence
MOST_LINKS = 40  # as in the kernel
_ROOT = re.compile(r"/proc/(\d{1,10})/root(?=/|$)")
_lock = threading.Lock()
_asked: Dict[str, Tuple[float, str]] = {}


def silent(path: str) -> str:
    """Say why `path` must not be touched: its file system gives no answer. "" where it does, or
    is a local one.
    """
    inside = _ROOT.match(path)
    root = inside.group() if inside else ""
    rows = table_of(inside.group(1) if inside else "self")
    mount = _remote_mount(root, os.path.abspath(path[len(root) :] or "/"), rows)
    return _ask(root + mount.point) if mount is not None else ""


def _remote_mount(root: str, path: str, rows: Sequence[MountRow]) -> Optional[MountRow]:
    """The first mount on the way to `path` for which another host or program answers. Only what
    lies before it is touched.
    """
    if not any(row.remote for row in rows):
        return None
    at, left, links = "/", path.split("/"), 0
    while left:
        part = left.pop(0)
        if part in ("", "."):
            continue
        at = os.path.dirname(at) if part == ".." else os.path.join(at, part)
        mount = of_path(rows, at)
        if mount is not None and mount.remote:
            return mount
        try:
            leads_to = os.readlink(root + at)
        except OSError:
            continue
        links += 1
        if links > MOST_LINKS:
            return None
        at = "/" if leads_to.startswith("/") else os.path.dirname(at)
        left = [*leads_to.split("/"), *left]
    return None


def _ask(point: str) -> str:
    with _lock:  # several looks at once ask once
        at, said = _asked.get(point, (0.0, ""))
        if not at or time.monotonic() - at > FRESH_S:
            ran = run_child("mounts_child", str(ANSWER_S), point, timeout_s=ANSWER_S + 0.5)
            said = (
                ""
                if json_lines(ran.stdout)
                else f"the file system at {point} gives no answer, so nothing on it was touched"
            )
            _asked[point] = time.monotonic(), said
    return said
