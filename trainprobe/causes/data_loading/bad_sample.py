"""One sample breaks the batch.

A sample of another length, a file that cannot be read, a field that is missing: the loader raises in `__getitem__` or when it stacks
samples into a batch. In a worker the error arrives wrapped as "Caught … in DataLoader worker process N".

It is recognised by torch's own words about batching, or by an exception inside a loader worker. One in the main process is `user-exception`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.columns_dropped import dropped
from trainprobe.causes.given_objects import broken, weigh_broken
from trainprobe.causes.scene import Scene, user_frame, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short, subject
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# torch/utils/data/_utils/collate.py and worker.py (ExceptionWrapper).
# What readers say of a file: Pillow, OpenCV, decord, FFmpeg, soundfile, pyarrow, tarfile, gzip.
BATCHING = r"stack expects each tensor|each element in list of batch|batch must contain tensors|resize storage that is not|Perhaps your features \("
UNREADABLE = (
    r"cannot identify image file|image file is truncated|broken data stream when reading image|Truncated File Read|!_?s(?:rc|size)\.empty\(\) in function"
    r"|DECORDError|decord\._ffi|moov atom not found|Invalid data found when processing input|LibsndfileError|Failed to open the input \""
    r"|Parquet magic bytes not found|Not an Arrow file|Expected to be able to read \d+ bytes for message body|tarfile\.ReadError|CRC check failed"
    r"|Compressed file ended before the end-of-stream|[Ff]ailed to (?:fetch|decode|read|load) (?:the )?(?:video|image|audio|sample)|image has wrong mode|not a JPEG file|libpng error|Corrupt JPEG data"
)
WORKER = r"Caught [\w.]+ in (?:DataLoader worker process \d+|pin memory thread)"
WORDING = rf"{BATCHING}|{UNREADABLE}|{WORKER}"
# A mistake in the code of the dataset breaks every sample, not one.
OF_THE_CODE = frozenset(
    {"NameError", "UnboundLocalError", "ImportError", "ModuleNotFoundError", "NotImplementedError", "SyntaxError", "RecursionError", "IndentationError"}
)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard, origin, empty = said(scene, WORDING), scene.origin, broken(scene, "empty")
    if empty is not None and empty.details.get("where") == "parent":
        yield from weigh_broken(empty, 26)
    if origin is not None and (origin.root_type or origin.type) in OF_THE_CODE:
        return
    if dropped(scene) is not None:
        return  # every sample lacks that column, not one
    # Batching words name it; "caught in a worker" only says where it was raised, so the two are weighed apart.
    exact = said(scene, f"{BATCHING}|{UNREADABLE}")
    if exact is not None:
        yield from spoken(scene, f"{BATCHING}|{UNREADABLE}")
    elif heard is not None and (better := _better_name(scene)):
        yield weighing(3, "suspects-log", f"It was raised inside a loader worker, and has a name of its own: {better}", heard.fact)
        return
    elif heard is not None:
        yield weighing(13, "suspects-log", f"The exception was raised inside a loader worker: {short(heard.text, 120)}", heard.fact)
    if heard is None and not (origin is not None and origin.worker is not None):
        return
    if origin is not None and (origin.worker is not None or _in_loader(scene)):
        where = user_frame(origin.frames)
        yield weighing(13, "suspects-stack", f"It was raised while a batch was made{f', at {where.where}' if where else ''}", origin)
    yield from first_to_fail(scene)


def _better_name(scene: Scene) -> str:
    """The more specific cause that names what was raised in the worker."""
    from trainprobe.causes import built  # the catalogue holds this very file

    finer = [cause for cause in built() if cause.wording and cause.id not in (CAUSE.id, "user-exception", "import-failure")]
    return next((cause.id for cause in finer if said(scene, cause.wording) is not None), "")


def _in_loader(scene: Scene) -> bool:
    origin = scene.origin
    return origin is not None and any("torch/utils/data/_utils/" in frame.file for frame in origin.frames)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    empty = broken(scene, "empty")
    if empty is not None and scene.origin is None:
        return sentence(empty.says)
    origin, heard = scene.origin, said(scene, f"{BATCHING}|{UNREADABLE}") or said(scene, WORDING)
    frame = user_frame(origin.frames) if origin is not None else None
    worker = f" in loader worker {origin.worker}" if origin is not None and origin.worker is not None else ""
    what = (
        f"{origin.root_type}: {short(origin.root_message, 120)}" if origin is not None and origin.root_type else short(heard.text, 140) if heard else "an error"
    )
    return sentence(f"{subject(scene)} could not make a batch{worker}{f' at {frame.where}' if frame else ''}: {what}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    origin = scene.origin
    frame = user_frame(origin.frames) if origin is not None else None
    return (
        fix(
            scene,
            "Find the sample",
            "for i in range(len(dataset)): dataset[i]   inside try/except that prints i",
            f"the line that raised is {frame.where}" if frame else "",
        ),
        fix(scene, "Pad, skip or repair it", "a collate_fn that pads to the longest sample, or a filter that drops broken ones on all ranks alike"),
    )


CAUSE = Cause(
    id="bad-sample",
    title="One sample breaks batching",
    means="One sample cannot be read or does not fit the others of its batch.",
    telling="stack expects each tensor to be equal size, or an exception caught in a loader worker.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="walk over the dataset once in one process: for i in range(len(dataset)): dataset[i]",
    refines="user-exception",
    wording=WORDING,
)
