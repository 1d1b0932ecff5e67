"""A disk or a quota is full, most often when a checkpoint is written.

The write fails with Errno 28 or 122, or torch's zip writer complains ("file write failed",
"unexpected pos"). The file that was begun is cut short.

It is recognised by those words of the rank that failed first, and by the host check of free space.
Full shared memory (/dev/shm) is `shm-exhausted`.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.data_loading.shm_exhausted import kept_in_memory
from trainprobe.causes.phrases import fix, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import all_of, confirmed, failed_check, first_of, stated
from trainprobe.causes.statements import advice, first_to_fail, quote, quote_after, statement
from trainprobe.signatures.messages import message

WORDING = message("disk-full")
IO_ERROR = message("disk-full.io-error")
WRITES = re.compile(r"(?i)save|write|dump|flush|checkpoint|mkdir|makedirs|to_parquet")
SHARED_MEMORY = message("disk-full.shared-memory")
FULL_MEMORY = message("shm-exhausted")
CHECK = "fs.space"


def _shared_memory(scene: Scene) -> Weighings:
    found = statement(scene, WORDING)
    if found is not None and re.search(SHARED_MEMORY, found.text):
        says = "The message is about shared memory, not about a disk"
        yield weighing(-13, "source", says, found.fact)
    elif found is not None and (raised := kept_in_memory(scene)) is not None:
        says = f"What found no space is kept in shared memory: {raised.frames[-1].where}"
        yield weighing(-13, "source", says, raised)
    elif found is not None and (full := statement(scene, FULL_MEMORY, scene.world)) is not None:
        says = f"Another process found shared memory full: {short(full.text, 100)}"
        yield weighing(-6, "source", says, full.fact)


def _io_error(scene: Scene) -> Weighings:
    """An I/O error below a write: a full or a failing volume."""
    found, origin = statement(scene, IO_ERROR), scene.origin
    if found is not None:
        frames = origin.frames[-6:] if origin is not None else ()
        writes = any(WRITES.search(f"{frame.name} {frame.text}") for frame in frames)
        says = f"{'A write' if writes else 'A call'} failed"
        yield quote(13 if writes else 6 if frames else 10, says, found)
        if writes:
            yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    found = statement(scene, WORDING) or statement(scene, IO_ERROR)
    check = scene.failed_check(CHECK)
    where = f" ({check.says.rstrip('.')})" if check is not None else ""
    return f"A disk or quota is full{where}{quote_after(found, 120)}"


CAUSE = Cause(
    id="disk-full",
    title="A disk or quota is full",
    weigh=all_of(
        first_of(confirmed(stated(WORDING), _shared_memory), _io_error),
        failed_check(CHECK, beside=WORDING),
    ),
    summary=_summary,
    fixes=lambda scene: (
        fix(
            "See which one",
            "df -h . /tmp; quota -s   (and: lfs quota -h on Lustre)",
            *advice(scene, CHECK),
            verify="df -h .",
        ),
        fix(
            "Keep fewer checkpoints",
            "save_total_limit=3, or delete older ones after a save has succeeded",
        ),
    ),
    ranks=nobody,
    would_settle="df -h and df -i at the folder that was written to",
    refines="user-exception",
    wording=WORDING,
    ready=ReadySigns(
        says=("has a disk that is full", "have a disk that is full"),
        checks=("fs.space", "fs.inodes", "fs.quota", "fs.system"),
    ),
)
