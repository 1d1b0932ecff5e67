"""One sample breaks the batch.

A sample of another length, a file that cannot be read, a field that is missing: the loader raises
in `__getitem__` or when it stacks samples into a batch. In a worker the error arrives wrapped as
"Caught … in DataLoader worker process N".

It is recognised by torch's own words about batching, or by an exception inside a loader worker. One
in the main process is `user-exception`.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.dropped_columns import dropped
from trainprobe.causes.phrases import Fixes, fix, short, subject
from trainprobe.causes.scene import Scene, Weighings, user_frame, weighing
from trainprobe.causes.statements import first_to_fail, quote, statement, weigh_statement
from trainprobe.causes.user_objects import broken, weigh_broken
from trainprobe.signatures.messages import message

BATCHING = message("bad-sample.batching")
UNREADABLE = message("bad-sample.unreadable")
WORKER = message("bad-sample.worker")
WORDING = rf"{BATCHING}|{UNREADABLE}|{WORKER}"
# A mistake in the code of the dataset breaks every sample, not one.
OF_THE_CODE = frozenset(
    {
        "NameError",
        "UnboundLocalError",
        "ImportError",
        "ModuleNotFoundError",
        "NotImplementedError",
        "SyntaxError",
        "RecursionError",
        "IndentationError",
    }
)


def _weigh(scene: Scene) -> Weighings:
    heard, origin, empty = statement(scene, WORDING), scene.origin, broken(scene, "empty")
    if empty is not None and empty.details.get("where") == "parent":
        yield from weigh_broken(empty, 26)
    if origin is not None and (origin.root_type or origin.type) in OF_THE_CODE:
        return
    if dropped(scene) is not None:
        return  # every sample lacks that column, not one
    # Batching words name it; "caught in a worker" only says where it was raised, so the two are
    # weighed apart.
    exact = statement(scene, f"{BATCHING}|{UNREADABLE}")
    if exact is not None:
        yield from weigh_statement(scene, f"{BATCHING}|{UNREADABLE}")
    elif heard is not None and (better := _better_name(scene)):
        says = f"It was raised inside a loader worker, and has a name of its own: {better}"
        yield weighing(3, "suspects-log", says, heard.fact)
        return
    elif heard is not None:
        yield quote(13, "The exception was raised inside a loader worker", heard)
    if heard is None and not (origin is not None and origin.worker is not None):
        return
    if origin is not None and (origin.worker is not None or _in_loader(scene)):
        where = user_frame(origin.frames)
        says = f"It was raised while a batch was made{f', at {where.where}' if where else ''}"
        yield weighing(13, "suspects-stack", says, origin)
    yield from first_to_fail(scene)


def _better_name(scene: Scene) -> str:
    """The more specific cause that names what was raised in the worker."""
    from trainprobe.causes import built  # the catalogue holds this very file

    finer = [
        cause
        for cause in built()
        if cause.wording and cause.id not in (CAUSE.id, "user-exception", "import-failure")
    ]
    return next((cause.id for cause in finer if statement(scene, cause.wording) is not None), "")


def _in_loader(scene: Scene) -> bool:
    origin = scene.origin
    return origin is not None and any(
        "torch/utils/data/_utils/" in frame.file for frame in origin.frames
    )


def _summary(scene: Scene) -> str:
    empty = broken(scene, "empty")
    if empty is not None and scene.origin is None:
        return empty.says
    origin = scene.origin
    heard = statement(scene, f"{BATCHING}|{UNREADABLE}") or statement(scene, WORDING)
    worker = ""
    if origin is not None and origin.worker is not None:
        worker = f" in loader worker {origin.worker}"
    what = "an error"
    if origin is not None and origin.root_type:
        what = f"{origin.root_type}: {short(origin.root_message, 120)}"
    elif heard:
        what = short(heard.text, 140)
    return f"{subject(scene)} could not make a batch{worker}{scene.at_own_line}: {what}"


def _fixes(scene: Scene) -> Fixes:
    origin = scene.origin
    frame = user_frame(origin.frames) if origin is not None else None
    return (
        fix(
            "Find the sample",
            "for i in range(len(dataset)): dataset[i]   inside try/except that prints i",
            f"the line that raised is {frame.where}" if frame else "",
        ),
        fix(
            "Pad, skip or repair it",
            "a collate_fn that pads to the longest sample, or a filter that drops broken ones on"
            " all ranks alike",
        ),
    )


CAUSE = Cause(
    id="bad-sample",
    title="One sample breaks batching",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle=(
        "walk over the dataset once in one process: for i in range(len(dataset)): dataset[i]"
    ),
    refines="user-exception",
    wording=WORDING,
)
