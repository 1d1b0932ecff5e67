"""A disk or a quota is full, most often when a checkpoint is written.

The write fails with Errno 28 or 122, or torch's zip writer complains ("file write failed", "unexpected pos"). The file that was begun is cut short.

It is recognised by those words of the rank that failed first, and by the host check of free space. Full shared memory (/dev/shm) is
`shm-exhausted`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import advice, checked, first_to_fail, said, spoken
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# Errno 28 and 122, caffe2/serialize/inline_container.cc (PytorchStreamWriter). Shared-memory segments are another cause's.
WORDING = (
    r"No space left on device(?!.{0,200}(?:/torch_|/dev/shm))|\[Errno 28\](?!.{0,200}(?:/torch_|/dev/shm))|os error 28\b|code: 28, kind: StorageFull|Disk quota exceeded|\[Errno 122\]"
    r"|write\(\): fd \d+ failed with (?:No space|Disk quota)|PytorchStreamWriter failed|inline_container\.cc.{0,80}file write failed|unexpected pos \d+|errno = 28|not enough space on the disk|database or disk is full|Can't write data"
)
IO_ERROR = r"\[Errno 5\]|os error 5\b|errno = 5,|write\(\): fd \d+ failed with "
WRITES = re.compile(r"(?i)save|write|dump|flush|checkpoint|mkdir|makedirs|to_parquet")
SHARED_MEMORY = r"(/torch_|/dev/shm|shared memory object)"
CHECK = "fs.space"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = said(scene, WORDING)
    yield from spoken(scene, WORDING)
    if heard is not None:
        yield from first_to_fail(scene)
        if re.search(SHARED_MEMORY, heard.text) is not None:
            yield weighing(-13, "source", "The message is about shared memory, not about a disk", heard.fact)
    yield from _io_error(scene)
    yield from checked(scene, CHECK, corroborates=heard is not None)


def _io_error(scene: Scene) -> Iterator[Weighing]:
    """An error of input and output below a write: a volume that takes no more, or a sick one."""
    found, origin = said(scene, IO_ERROR), scene.origin
    if found is None or said(scene, WORDING) is not None:
        return
    frames = origin.frames[-6:] if origin is not None else ()
    writes = any(WRITES.search(f"{frame.name} {frame.text}") for frame in frames)
    yield weighing(13 if writes else 6 if frames else 10, "suspects-log", f"{'A write' if writes else 'A call'} failed: {short(found.text, 120)}", found.fact)
    if writes:
        yield from first_to_fail(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard, check = said(scene, WORDING) or said(scene, IO_ERROR), next(iter(scene.checks(CHECK)), None)
    where = f" ({check.says.rstrip('.')})" if check is not None else ""
    return sentence(f"A disk or quota is full{where}{f': {short(heard.text, 120)}' if heard is not None else ''}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "See which one", "df -h . /tmp; quota -s   (and: lfs quota -h on Lustre)", *advice(scene, CHECK), verify="df -h ."),
        fix(scene, "Keep fewer checkpoints", "save_total_limit=3, or delete older ones after a save has succeeded"),
    )


CAUSE = readied(
    Cause(
        id="disk-full",
        title="A disk or quota is full",
        means="A disk or a quota is full, so something could not be written.",
        telling="No space left on device, Disk quota exceeded, PytorchStreamWriter failed.",
        modes=("crash", "hang", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="df -h and df -i at the folder that was written to",
        refines="user-exception",
        wording=WORDING,
    ),
    Signs(says=("has a disk that is full", "have a disk that is full"), checks=("fs.space", "fs.inodes", "fs.quota")),
)
