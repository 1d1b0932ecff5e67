# /// trainprobe
# rung: 14
# ladder: false
# ready: quick
# slots: [step, prolog, epilog, healthcheck]
# question: Do the job's file systems answer, and are they in order?
# scope: host
# needs: []
# timeout_s: 40
# climbs: []
# after: []
# means: A file system that the job needs is missing, full, slow or does not answer. Ranks would
#   hang or fail on it.
# ///
"""Ask every path in a child of its own, and try what ranks do: shared memory, small files, large
files. Standard library only.

Flags and environment: see `_shared/checks.py`; TRAINPROBE_PATHS holds the folders of the job.
Events: checks, and as `value` the mount of each path.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from _shared import checks
from _storage import path_checks, rates, shared_memory, system_disk

PATHS = path_checks.Paths()


def large_files(launch: checks.Launch, results: checks.Results) -> None:
    rates.large_files(PATHS.writable(launch, results), results)


def values(_launch: checks.Launch, _results: checks.Results) -> None:
    if os.path.isdir(shared_memory.SHM):
        disk = os.statvfs(shared_memory.SHM)
        checks.value("shm.size_bytes", str(disk.f_blocks * disk.f_frsize))


CHECKS = (
    checks.Check(("fs.system",), system_disk.look, system_disk.SLOTS),
    checks.Check(("fs.hang",), PATHS.hang, checks.ADMIN),
    checks.Check(("fs.mounts",), PATHS.present, checks.ADMIN),
    checks.Check(("fs.inodes",), PATHS.room),
    checks.Check(("fs.quota",), path_checks.quota),
    checks.Check(("fs.cache",), PATHS.caches),
    checks.Check(("shm.alloc",), shared_memory.alloc),
    checks.Check(("shm.stale",), shared_memory.stale, ("step", "epilog")),
    checks.Check(("fs.smallfile",), rates.small_files),
    checks.Check(("fs.seqread", "fs.ckpt"), large_files, checks.STEP, "standard"),
    checks.Check((), values),
)

if __name__ == "__main__":
    checks.run(CHECKS, __doc__ or "", "The file systems answer and have room.")
