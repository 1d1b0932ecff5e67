"""One sample breaks the batch.

A sample of another length, a file that cannot be read, a field that is missing: the loader raises
in `__getitem__` or when it stacks samples into a batch. In a worker the error arrives wrapped as
"Caught … in DataLoader worker process N".

It is recognised by torch's own words about batching, or by an exception inside a loader worker. One
in the main process is `user-exception`.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.dropped_columns import dropped
from trainprobe.causes.finer_causes import finer_cause
from trainprobe.causes.phrases import Fixes, fixes, short, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, quote, statement, weigh_statement
from trainprobe.causes.user_objects import broken, weigh_broken
from trainprobe.signatures.messages import message

BATCHING = message("bad-sample.batching")
UNREADABLE = message("bad-sample.unreadable")
EXACT = f"{BATCHING}|{UNREADABLE}"
WORKER = message("bad-sample.worker")
WORDING = f"{EXACT}|{WORKER}"
# A mistake in the code of the dataset breaks every sample, not one.
OF_THE_CODE = re.compile(
    r"(?:Name|UnboundLocal|Import|ModuleNotFound|NotImplemented|Syntax|Recursion|Indentation)Error"
)
FIXES = """
Find the sample
    for i in range(len(dataset)): dataset[i]   inside try/except that prints i
    {look}
Pad, skip or repair it
    a collate_fn that pads to the longest sample, or a filter that drops broken ones on all ranks
        alike
"""


def _weigh(scene: Scene) -> Weighings:
    found, origin, empty = statement(scene, WORDING), scene.origin, broken(scene, "empty")
    if empty is not None and empty.details.get("where") == "parent":
        yield from weigh_broken(empty, 26)
    if origin is not None and OF_THE_CODE.fullmatch(origin.root_type or origin.type):
        return
    if dropped(scene) is not None:
        return  # every sample lacks that column, not one
    if statement(scene, EXACT) is not None:
        yield from weigh_statement(scene, EXACT)
    elif found is not None:
        # That it was raised in a worker names no cause.
        general = (CAUSE.id, "user-exception", "import-failure")
        if better := finer_cause(lambda wording: statement(scene, wording), *general):
            says = f"It was raised inside a loader worker, and has a name of its own: {better}"
            yield weighing(3, "suspects-log", says, found.fact)
            return
        yield quote(13, "The exception was raised inside a loader worker", found)
    in_worker = origin is not None and origin.worker is not None
    if found is None and not in_worker:
        return
    if in_worker or _in_loader(scene):
        place = f", at {scene.own_frame.where}" if scene.own_frame else ""
        says = f"It was raised while a batch was made{place}"
        yield weighing(13, "suspects-stack", says, origin)
    yield from first_to_fail(scene)


def _in_loader(scene: Scene) -> bool:
    frames = scene.origin.frames if scene.origin is not None else ()
    return any("torch/utils/data/_utils/" in frame.file for frame in frames)


def _summary(scene: Scene) -> str:
    empty, origin = broken(scene, "empty"), scene.origin
    if empty is not None and origin is None:
        return empty.says
    found = statement(scene, EXACT) or statement(scene, WORDING)
    what = short(found.text, 140) if found else "an error"
    worker = ""
    if origin is not None and origin.root_type:
        what = f"{origin.root_type}: {short(origin.root_message, 120)}"
    if origin is not None and origin.worker is not None:
        worker = f" in loader worker {origin.worker}"
    return f"{subject(scene)} could not make a batch{worker}{scene.at_own_line}: {what}"


def _fixes(scene: Scene) -> Fixes:
    frame = scene.own_frame
    return fixes(FIXES, look=f"the line that raised is {frame.where}" if frame else "")


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
