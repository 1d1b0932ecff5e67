"""Shared memory: what the ranks will need can be had, and what dead processes left there."""

from __future__ import annotations

import os
import re
import shlex
import time
from typing import List, Set

from _shared import checks, child_processes, kernel_files

SHM = "/dev/shm"  # noqa: S108 - the place that is measured
MIB = 2**20
# for each rank: a segment of NCCL's is up to 33 MB; a batch of a worker
NCCL_BYTES, CPU_BYTES = 33 * MIB, 4 * MIB
LEFT = re.compile(
    r"nccl-\w+|torch_(\d+)_\w+|sem\.\w+|pymp-\w+|psm\w*[._-]\w+|vader_segment\.\S+"
    r"|__KMP_REGISTERED_LIB_(\d+)\w*"
)
OLD_S = 600.0
MOST_FILES, MOST_PROCESSES = 20_000, 2000


def alloc(launch: checks.Launch, results: checks.Results) -> None:
    """Take what the ranks need, as NCCL does, and give it back at once."""
    each = NCCL_BYTES if kernel_files.matching(launch.root, "/dev/nvidia[0-9]*") else CPU_BYTES
    need = int(results.threshold("shm.alloc", launch.nproc * each))
    answer = child_processes.ask(lambda: _taken(need), 5.0)
    sentence = (
        f"{need / MIB:.0f} MiB of {SHM} for {launch.nproc} rank{'s' if launch.nproc != 1 else ''}"
    )
    fix = (
        "docker run --shm-size=1g or --ipc=host; on Kubernetes an emptyDir with medium Memory; rm"
        " what /dev/shm holds"
    )
    if answer.how == "answered":
        results.add("shm.alloc", "ok", f"{sentence} can be had.", need)
    elif answer.how == "raised":
        results.add(
            "shm.alloc",
            "fail",
            f"{sentence} cannot be had: {answer.reply}.",
            need,
            fix=fix,
            threshold=need,
        )
    else:
        results.add("shm.alloc", "unknown", f"{sentence} could not be tried: {answer.reply}.", need)


def _taken(size: int) -> None:
    path = os.path.join(SHM, f"trainprobe-{os.getpid()}")
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.unlink(path)  # whatever happens, nothing stays
        os.posix_fallocate(file, 0, size)
    finally:
        os.close(file)


def stale(_launch: checks.Launch, results: checks.Results) -> None:
    """Files left behind by libraries, which no living process has open or mapped."""
    now, files = time.time(), []
    for name in sorted(os.listdir(SHM))[:MOST_FILES] if os.path.isdir(SHM) else []:
        found = LEFT.fullmatch(name)
        try:
            row = os.lstat(os.path.join(SHM, name))
        except OSError:
            continue
        owner = next((int(pid) for pid in (found.groups() if found else ()) if pid), 0)
        if (
            found
            and now - row.st_mtime > OLD_S
            and not (owner and os.path.exists(f"/proc/{owner}"))
        ):
            files.append((name, row.st_ino, row.st_blocks * 512, row.st_uid))
    held = _held() if files else set()
    left = [
        (name, size)
        for name, inode, size, uid in files
        if inode not in held and (uid == os.getuid() or os.getuid() == 0)
    ]
    disk = os.statvfs(SHM) if os.path.isdir(SHM) else None
    total = disk.f_blocks * disk.f_frsize if disk else 0
    size, most = sum(size for _, size in left), results.threshold("shm.stale", 0.1)
    # others chose the names, and the line is there to be copied
    names = " ".join(shlex.quote(os.path.join(SHM, name)) for name, _ in left[:20])
    sentence = (
        f"{len(left)} files of dead processes hold {size / MIB:.0f} MiB of {SHM}"
        if left
        else f"No file of a dead process lies in {SHM}"
    )
    results.add(
        "shm.stale",
        "warn" if total and size > total * most else "ok",
        f"{sentence}.",
        [name for name, _ in left[:100]],
        fix=f"rm {names}",
        threshold=most,
    )


def _held() -> Set[int]:
    """Inodes of /dev/shm that a process maps or has open, as far as we may look."""
    held: Set[int] = set()
    pids: List[str] = [entry for entry in os.listdir("/proc") if entry.isdecimal()][:MOST_PROCESSES]
    for pid in pids:
        held |= {
            int(inode)
            for inode in re.findall(
                r"^\S+ \S+ \S+ \S+ (\d+) +/dev/shm/",
                kernel_files.read("/", f"/proc/{pid}/maps"),
                re.MULTILINE,
            )
        }
        try:
            links = [
                os.path.join(f"/proc/{pid}/fd", name) for name in os.listdir(f"/proc/{pid}/fd")
            ]
            held |= {os.stat(link).st_ino for link in links if os.readlink(link).startswith(SHM)}
        except OSError:
            continue
    return held
