"""An object cannot cross into a worker that is started by spawn.

With spawn or forkserver the dataset, its transforms and the collate function are pickled. A lambda,
a local function, an open file or a database handle cannot be. The child often adds "EOFError: Ran
out of input", which is only its echo.

It is recognised by pickle's words in a traceback that runs through the start of a process.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import fixes, short
from trainprobe.causes.process_starts import child_died, in_notebook
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, quote, statement, weigh_statement
from trainprobe.causes.user_objects import broken, weigh_broken
from trainprobe.signatures.messages import message

WORDING = message("unpicklable-dataset")
ECHO = r"EOFError: Ran out of input"
READS_A_FILE = message("unpicklable-dataset.reads-a-file")
STARTS = (
    "multiprocessing/",
    "multiprocess/",
    "torch/utils/data/dataloader.py",
    "multiprocessing\\",
    "torch/multiprocessing/",
)


def _weigh(scene: Scene) -> Weighings:
    heard, origin = statement(scene, WORDING), scene.origin
    if heard is None and child_died(scene):
        what = "an object that it cannot load ends it"
        if in_notebook(scene):
            what = "a class of a notebook's cell is not there for it"
        says = f"The new process had died before it was handed its worker: {what}"
        yield weighing(13 if in_notebook(scene) else 6, "suspects-log", says, scene.origin)
    measured = broken(scene, "unpicklable")
    yield from weigh_broken(measured, 26)
    if heard is None or measured is not None:
        return
    starts = origin is not None and any(
        part in frame.file for frame in origin.frames for part in STARTS
    )
    if re.search(ECHO, heard.text) and not starts:  # of a reader it is an empty file
        alone = (origin is None or not origin.frames) and statement(scene, READS_A_FILE) is None
        says = (
            "A process read an empty stream of pickles, as a spawned child whose parent failed does"
        )
        yield weighing(10 if alone else 3, "suspects-log", says, heard.fact)
        return
    if starts and heard.origin:
        yield from weigh_statement(scene, WORDING)
        yield weighing(
            6, "suspects-stack", "The traceback runs through the start of a process", origin
        )
    else:  # pickle also fails in torch.save and in object collectives
        yield quote(10, "Something could not be pickled", heard)
    yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    heard = statement(scene, WORDING)
    if heard:
        return f"An object cannot cross into a spawned process: {short(heard.text, 140)}"
    return "An object cannot cross into a spawned process"


CAUSE = Cause(
    id="unpicklable-dataset",
    title="An object cannot be pickled for a worker",
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        Find the object
            python -c 'import pickle; from YOURMODULE import make_dataset;
                pickle.dumps(make_dataset())'
        Make it picklable
            module-level functions instead of lambdas; open files and connections lazily, inside
                __getitem__
            __getstate__ that leaves out handles
    """),
    ranks=nobody,
    would_settle="pickle.dumps(dataset) in the main process",
    refines="user-exception",
    wording=WORDING,
)
