"""A disk or a quota is full, most often when a checkpoint is written.

The write fails with Errno 28 or 122, or torch's zip writer complains ("file write failed",
"unexpected pos"). The file that was begun is cut short.

It is recognised by those words of the rank that failed first, and by the host check of free space.
Full shared memory (/dev/shm) is `shm-exhausted`.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import Fixes, fix, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import (
    advice,
    checked,
    first_to_fail,
    quote_after,
    statement,
    weigh_statement,
)
from trainprobe.signatures.messages import message

WORDING = message("disk-full")
IO_ERROR = message("disk-full.io-error")
WRITES = re.compile(r"(?i)save|write|dump|flush|checkpoint|mkdir|makedirs|to_parquet")
SHARED_MEMORY = message("disk-full.shared-memory")
CHECK = "fs.space"


def _weigh(scene: Scene) -> Weighings:
    heard = statement(scene, WORDING)
    yield from weigh_statement(scene, WORDING)
    if heard is not None:
        yield from first_to_fail(scene)
        if re.search(SHARED_MEMORY, heard.text) is not None:
            yield weighing(
                -13, "source", "The message is about shared memory, not about a disk", heard.fact
            )
    yield from _io_error(scene)
    yield from checked(scene, CHECK, corroborates=heard is not None)


def _io_error(scene: Scene) -> Weighings:
    """An error of input and output below a write: a volume that takes no more, or a sick one."""
    found, origin = statement(scene, IO_ERROR), scene.origin
    if found is None or statement(scene, WORDING) is not None:
        return
    frames = origin.frames[-6:] if origin is not None else ()
    writes = any(WRITES.search(f"{frame.name} {frame.text}") for frame in frames)
    says = f"{'A write' if writes else 'A call'} failed: {short(found.text, 120)}"
    yield weighing(13 if writes else 6 if frames else 10, "suspects-log", says, found.fact)
    if writes:
        yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    heard = statement(scene, WORDING) or statement(scene, IO_ERROR)
    check = scene.failed_check(CHECK)
    where = f" ({check.says.rstrip('.')})" if check is not None else ""
    return f"A disk or quota is full{where}{quote_after(heard, 120)}"


def _fixes(scene: Scene) -> Fixes:
    return (
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
    )


CAUSE = Cause(
    id="disk-full",
    title="A disk or quota is full",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="df -h and df -i at the folder that was written to",
    refines="user-exception",
    wording=WORDING,
    ready=ReadySigns(
        says=("has a disk that is full", "have a disk that is full"),
        checks=("fs.space", "fs.inodes", "fs.quota"),
    ),
)
