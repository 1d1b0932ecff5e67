# /// trainprobe
# rung: 14
# ladder: false
# ready: quick
# slots: [step, prolog, epilog, healthcheck]
# question: Do the file systems of the job answer, and are they what they should be?
# scope: host
# needs: []
# timeout_s: 40
# climbs: []
# after: []
# means: A file system that the job needs is missing, full, slow or does not answer. Ranks would hang or fail on it.
# ///
"""Ask every path in a child of its own, and try what ranks do: shared memory, small files, large files. Standard library only.

Flags and environment: see _ready/checking.py; TRAINPROBE_PATHS holds the folders of the job. Events: checks, and as `value` the mount of each path.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from _storage import answers, rates, shared  # isort: skip  # before _ready, which takes this folder off the path
from _ready import checking  # isort: skip

PATHS = answers.Paths()


def large_files(asked: checking.Asked, told: checking.Told) -> None:
    rates.large_files(PATHS.writable(asked, told), told)


def values(_asked: checking.Asked, _told: checking.Told) -> None:
    if os.path.isdir(shared.SHM):
        disk = os.statvfs(shared.SHM)
        checking.value("shm.size_bytes", str(disk.f_blocks * disk.f_frsize))


CHECKS = (
    checking.Check(("fs.hang",), PATHS.hang, checking.ADMIN),
    checking.Check(("fs.mounts",), PATHS.present, checking.ADMIN),
    checking.Check(("fs.inodes",), PATHS.room),
    checking.Check(("fs.quota",), answers.quota),
    checking.Check(("fs.cache",), PATHS.caches),
    checking.Check(("shm.alloc",), shared.alloc),
    checking.Check(("shm.stale",), shared.stale, ("step", "epilog")),
    checking.Check(("fs.smallfile",), rates.small_files),
    checking.Check(("fs.seqread", "fs.ckpt"), large_files, checking.STEP, "standard"),
    checking.Check((), values),
)

if __name__ == "__main__":
    checking.make(CHECKS, __doc__ or "", "The file systems answer and have room.")
