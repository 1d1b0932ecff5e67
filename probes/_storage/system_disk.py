"""The node's own disk: full, or read-only after an error. Looked at only; nothing is written."""

from __future__ import annotations

import os
from typing import List, Tuple

from _shared import checks, child_processes, kernel_files
from _storage import mounts

SLOTS = ("prolog", "epilog", "healthcheck")
NEEDED = "/tmp"  # noqa: S108 - the folder that is looked at
OTHERS = ("/var/tmp", "/var/log", "/run", "/dev/shm")  # noqa: S108 - the same
LEAST_BYTES = 2**20
LOOK_S = 3.0


def trouble(folder: str) -> str:
    """Why nobody can write there, "" where there is no such folder."""
    if not os.path.isdir(folder):
        return ""
    disk = os.statvfs(folder)
    if disk.f_flag & os.ST_RDONLY:
        return f"{folder} is read-only"
    free = disk.f_bavail * disk.f_frsize
    if disk.f_blocks and free < LEAST_BYTES:
        return f"{folder} is full ({free // 1024} KiB free)"
    return f"{folder} has no inodes left" if disk.f_files and not disk.f_favail else ""


def root_trouble(root: str) -> str:
    """Whether the disk of / is read-only though fstab mounts it to be written: a kernel does that
    after an error. A node without a disk has no such line.
    """
    lines = kernel_files.read(root, "/etc/fstab").splitlines()
    rows = [fields for fields in map(str.split, lines) if len(fields) > 3 and fields[1] == "/"]
    now = mounts.on(mounts.table(root), "/")
    written = rows and not rows[0][0].startswith("#") and "ro" not in rows[0][3].split(",")
    if not written or now is None or "ro" not in (*now.options.split(","), *now.whole.split(",")):
        return ""
    return f"/ ({now.kind}) is read-only, and /etc/fstab mounts it to be written"


def look(launch: checks.Launch, results: checks.Results) -> None:
    folders = (NEEDED, *OTHERS)
    reads = [lambda folder=folder: trouble(folder) for folder in folders]
    answers = child_processes.ask_all(reads, LOOK_S)
    found: List[Tuple[str, str]] = []
    for folder, answer in zip(folders, answers):
        says = answer.reply if answer.how == "answered" else f"{folder} gives no answer"
        found += [(folder, says)] if says else []
    disk = root_trouble(launch.root)
    says = [disk] if disk else []
    says += [row for _, row in found]
    blocks = bool(disk) or any(folder == NEEDED for folder, _ in found)
    sentence = f"System disk: {'; '.join(says) or 'it can be written, and has room'}."
    more = {} if blocks or not says else {"severity": "degraded"}
    results.add("fs.system", "fail" if says else "ok", sentence, says, **more)
