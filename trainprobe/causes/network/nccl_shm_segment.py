"""NCCL cannot create or grow its shared-memory segment.

Ranks of one host exchange data through files in /dev/shm. Docker gives a container 64 MiB there,
segments of killed jobs fill it, or it is not writable: NCCL then fails as it sets up.

It is recognised by NCCL's words about a segment, or by posix_fallocate and shm_open of a file
called nccl. The data loader's segments are `shm-exhausted`.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import GIB, fixes, short, size
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import (
    UNHANDLED_SYSTEM,
    confirmed,
    failed_at_start,
    first_of,
    general_error,
)
from trainprobe.causes.startup_failures import captured, lines, startup_failure
from trainprobe.signatures.messages import message

WORDING = message("nccl-shm-segment")
_SIZE = re.compile(r"\(size (\d{1,15})\)|to (\d{1,15}) bytes")


def _small(scene: Scene) -> Weighings:
    given = scene.given("shm.size_bytes")
    if given is not None and given.number is not None and given.number < GIB:
        says = f"The shared memory has {size(given.number)} in all"
        yield weighing(10, "environment-and-limits", says, given)


def _summary(scene: Scene) -> str:
    found, given = startup_failure(scene, WORDING, "nccl-shm"), scene.given("shm.size_bytes")
    match = _SIZE.search(found.text) if found is not None else None
    wanted = f" of {size(float(match.group(1) or match.group(2)))}" if match is not None else ""
    room = f", and /dev/shm has {size(given.number)} in all" if given is not None else ""
    reasons = captured(lines(scene, "nccl-shm"), "error")
    why = f" ({short(reasons[0], 60)})" if reasons else ""
    return f"NCCL cannot make a shared-memory segment{wanted} in /dev/shm{why}{room}"


CAUSE = Cause(
    id="nccl-shm-segment",
    title="NCCL cannot create its shared-memory segment",
    weigh=first_of(
        confirmed(failed_at_start(WORDING, "nccl-shm"), _small),
        general_error(UNHANDLED_SYSTEM, "a system call failed, as without room in /dev/shm"),
    ),
    summary=_summary,
    fixes=fixes("""
        See how much room there is
            df -h /dev/shm; ls -l /dev/shm | head
            verify: df -h /dev/shm
        Give the container more
            docker run --shm-size=16g …   or   --ipc=host
            Kubernetes: an emptyDir with medium: Memory, mounted at /dev/shm
            verify: df -h /dev/shm
        [disruptive] Remove what killed jobs left
            fuser -v /dev/shm/nccl-*; rm /dev/shm/nccl-*   (only when no job runs here)
        As a bridge
            export NCCL_SHM_DISABLE=1   (slower)
    """),
    ranks=nobody,
    would_settle="df -h /dev/shm inside the container",
    accounts_for=("user-exception", "shm-exhausted", "disk-full", "native-crash"),
    wording=WORDING,
)
