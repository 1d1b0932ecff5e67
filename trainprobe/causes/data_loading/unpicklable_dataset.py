"""An object cannot cross into a worker that is started by spawn.

With spawn or forkserver the dataset, its transforms and the collate function are pickled. A lambda,
a local function, an open file or a database handle cannot be. The child often adds "EOFError: Ran
out of input", which is only its echo.

It is recognised by pickle's words in a traceback that runs through the start of a process.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import fixes
from trainprobe.causes.process_starts import child_died, in_notebook
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import all_of, filled, first_of
from trainprobe.causes.statements import first_to_fail, quote, statement, weigh_statement
from trainprobe.causes.user_objects import broken, weigh_broken
from trainprobe.signatures.messages import message

WORDING = message("unpicklable-dataset")
ECHO = r"EOFError: Ran out of input"
NAMED = r"(?:[Cc]an't|cannot) (?:pickle|get) [^\n]{1,200}"  # it says which object
READS_A_FILE = message("unpicklable-dataset.reads-a-file")
STARTS = re.compile(
    r"multiprocessing[/\\]|multiprocess/|torch/utils/data/dataloader\.py|torch/multiprocessing/"
)


def _died(scene: Scene) -> Weighings:
    if statement(scene, WORDING) is None and child_died(scene):
        what = "an object that it cannot load ends it"
        if in_notebook(scene):
            what = "a class of a notebook's cell is not there for it"
        says = f"The new process had died before it was handed its worker: {what}"
        yield weighing(13 if in_notebook(scene) else 6, "suspects-log", says, scene.origin)


def _stated(scene: Scene) -> Weighings:
    found, origin = statement(scene, WORDING), scene.origin
    if found is None:
        return
    starts = origin is not None and any(STARTS.search(frame.file) for frame in origin.frames)
    if re.search(ECHO, found.text) and not starts:
        # Of a reader it is an empty file.
        alone = (origin is None or not origin.frames) and statement(scene, READS_A_FILE) is None
        says = "A process read an empty stream, as a spawned child whose parent failed does"
        yield weighing(10 if alone else 3, "suspects-log", says, found.fact)
        return
    if starts and found.origin:
        yield from weigh_statement(scene, WORDING)
        says = "The traceback runs through the start of a process"
        yield weighing(6, "suspects-stack", says, origin)
    else:
        # Pickle also fails in torch.save and in object collectives.
        yield quote(10, "Something could not be pickled", found)
    yield from first_to_fail(scene)


def _measured(scene: Scene) -> Weighings:
    yield from weigh_broken(broken(scene, "unpicklable"), 26)


CAUSE = Cause(
    id="unpicklable-dataset",
    title="An object cannot be pickled for a worker",
    weigh=all_of(_died, first_of(_measured, _stated)),
    summary=filled("An object cannot cross into a spawned process{quoted}", NAMED, WORDING),
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
