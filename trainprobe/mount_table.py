"""The mounts that a process sees (proc_pid_mountinfo(5)), and which of them may hang."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import List, Optional

# File systems whose answers come over a network.
NETWORK = tuple(
    """
    nfs nfs4 lustre ceph cifs smb3 smbfs 9p afs beegfs gpfs glusterfs orangefs pvfs2 wekafs
    panfs
    """.split()
)
CLUSTER = ("ocfs2", "gfs2", "coda", "virtiofs", "daos", "quobyte", "vast")
REMOTE = frozenset((*NETWORK, *CLUSTER))
# Their answers come from memory or a disk of this host: asking them for a file's size cannot hang
# on somebody else.
DISKS = tuple(
    """
    ext2 ext3 ext4 xfs btrfs f2fs zfs bcachefs squashfs erofs vfat iso9660
    """.split()
)
LOCAL = frozenset((*DISKS, "tmpfs", "ramfs", "devtmpfs", "devpts", "mqueue", "hugetlbfs"))
TABLE_CAP = 4 * 2**20


@dataclass(frozen=True)
class MountRow:
    """One mount. `device` is `0:47`, as the kernel prints it; `source` is `server:/export`."""

    number: str
    device: str
    point: str
    fstype: str
    source: str

    @property
    def remote(self) -> bool:
        """Another program or host answers for it: a network file system or FUSE."""
        return self.fstype in REMOTE or (
            self.fstype.startswith("fuse") and self.fstype != "fusectl"
        )


def table_of(pid: object, proc: str = "/proc") -> List[MountRow]:
    """The mounts in the namespace of a process (a pid or `self`); empty where not readable."""
    try:
        with open(f"{proc}/{pid}/mountinfo", encoding="utf-8", errors="replace") as file:
            return parse(file.read(TABLE_CAP))
    except OSError:
        return []


def parse(mountinfo: str) -> List[MountRow]:
    """Fields 1, 3 and 5 are number, device and point; type and source follow ` - `."""
    rows = []
    for line in mountinfo.splitlines():
        place, dash, kind = line.partition(" - ")
        fields, kinds = place.split(), kind.split()
        if dash and len(fields) >= 5 and len(kinds) >= 2:
            rows.append(
                MountRow(fields[0], fields[2], _plain(fields[4]), kinds[0], _plain(kinds[1]))
            )
    return rows


def of_path(rows: Sequence[MountRow], path: str) -> Optional[MountRow]:
    """The mount of a path: the longest mount point; of several on one point the last."""
    best: Optional[MountRow] = None
    for row in rows:
        inside = row.point in ("/", path) or path.startswith(row.point + "/")
        if inside and (best is None or len(row.point) >= len(best.point)):
            best = row
    return best


def _plain(text: str) -> str:
    for code, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, plain)
    return text
