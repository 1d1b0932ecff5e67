"""Which mount a path lies on, and whether it answers. A child tries each: a dead server blocks."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from _shared import checks, child_processes, kernel_files

HANG_S = 5.0
# a server that is slow for a moment is slow for all nodes: none of them is taken away for that
HANG_OF_ADMIN_S = 15.0
NETWORK = re.compile(
    r"nfs\d?|lustre|gpfs|beegfs\w*|ceph|cifs|smb\d?|9p|afs|panfs|weka\w*|wekafs|glusterfs"
    r"|orangefs|daos|fuse(?:\.\w[\w.-]*)?"
)
# File systems of fuse that are local.
LOCAL_FUSE = re.compile(
    r"fuse\.(?:lxcfs|portal|gvfsd-fuse|squashfuse\w*|overlayfs|fuse-overlayfs|snapfuse|gocryptfs"
    r"|rosetta)|fusectl|fuseblk"
)
MOST = 24


class Mount(NamedTuple):
    """One row of mountinfo(5). `options` are the mount's, `whole` the file system's."""

    point: str
    kind: str
    source: str
    options: str
    whole: str

    @property
    def network(self) -> bool:
        return bool(NETWORK.fullmatch(self.kind)) and not LOCAL_FUSE.fullmatch(self.kind)

    def shown(self) -> str:
        """The same text on every node with the same mount: without a local disk's device."""
        return (
            f"{self.kind} {self.source} at {self.point}"
            if self.network
            else f"{self.kind} at {self.point}"
        )


class Path(NamedTuple):
    """What a path said: `stat` where it answered, `problem` where not; `real` is without links."""

    path: str
    how: str
    problem: str
    real: str
    stat: Dict[str, Any]
    where: str
    mount: Optional[Mount]


def table(root: str) -> List[Mount]:
    found = []
    for line in kernel_files.read(root, "/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        fields, more = left.split(" "), right.split(" ")
        if len(fields) > 5 and len(more) > 2:
            found.append(Mount(plain(fields[4]), more[0], plain(more[1]), fields[5], more[2]))
    return found


def plain(text: str) -> str:
    """Undo the octal escapes of mountinfo and fstab."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def on(mounts: List[Mount], path: str) -> Optional[Mount]:
    """The mount that a path lies on: the longest point above it, of two at one point the later."""
    best: Optional[Mount] = None
    for mount in mounts:
        above = mount.point.rstrip("/") + "/"
        if (path.rstrip("/") + "/").startswith(above) and (
            best is None or len(mount.point) >= len(best.point)
        ):
            best = mount
    return best


def asked_paths(launch: checks.Launch, mounts: List[Mount]) -> Tuple[List[str], List[str]]:
    """(what the job needs, what else could block it). Only a health check asks unneeded mounts:
    each look at a hanging one may leave a process behind.
    """
    needed = list(launch.paths[:MOST])
    others = (
        [os.environ.get("HOME", ""), os.environ.get("TMPDIR", "")] if launch.slot == "step" else []
    )
    others += (
        [mount.point for mount in mounts if mount.network] if launch.slot == "healthcheck" else []
    )
    return (
        needed,
        [path for path in dict.fromkeys(others) if path.startswith("/") and path not in needed][
            :MOST
        ],
    )


def look(launch: checks.Launch, deadline_s: float) -> Dict[str, Path]:
    """Ask all at once."""
    mounts = table(launch.root)
    needed, others = asked_paths(launch, mounts)
    paths = [*needed, *others]
    answers = child_processes.ask_all(
        [
            lambda path=path, tries=path in needed and launch.slot == "step": ask(path, tries)  # type: ignore[misc]
            for path in paths
        ],
        deadline_s,
    )
    found = {}
    for path, answer in zip(paths, answers):
        reply = answer.reply if answer.how == "answered" else {}
        real = reply.get("real") or os.path.normpath(path)
        found[path] = Path(
            path,
            answer.how,
            str(reply.get("problem") or ("" if reply else answer.reply)),
            real,
            reply,
            answer.where,
            on(mounts, real),
        )
    return found


def ask(path: str, tries: bool) -> Dict[str, Any]:
    """In the child: all that may block. `tries` also writes and removes a small file."""
    reply: Dict[str, Any] = {"real": os.path.realpath(path)}
    try:
        os.stat(path)
        if os.path.isdir(path):
            with os.scandir(path) as entries:
                next(entries, None)
        disk = os.statvfs(path)
        reply["disk"] = [
            disk.f_frsize * disk.f_blocks,
            disk.f_frsize * disk.f_bavail,
            disk.f_files,
            disk.f_favail,
        ]
    except OSError as error:
        return {
            **reply,
            "problem": os.strerror(error.errno or 0),
            "errno": errno.errorcode.get(error.errno or 0, ""),
        }
    if tries and os.path.isdir(path):
        reply["writable"] = written(path)
    return reply


def written(folder: str) -> str:
    """The error's name, or "" where a file could be written."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".trainprobe-") as file:
            file.write(b"trainprobe\n" * 400)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "error")
    return ""


def planned(root: str) -> Dict[str, str]:
    """Mount points of fstab that are to be mounted at boot: point to type."""
    rows = [
        line.split()
        for line in kernel_files.read(root, "/etc/fstab").splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]
    return {
        plain(row[1]): row[2]
        for row in rows
        if len(row) > 3
        and row[1].startswith("/")
        and "noauto" not in row[3].split(",")
        and row[2] != "swap"
    }
