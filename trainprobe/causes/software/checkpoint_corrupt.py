"""A checkpoint or another file of weights is cut short or is no such file at all.

A save that was killed, a download that broke off, a pointer of git-lfs in place of the file, a page
of a web server under its name: whoever reads it fails, often on all ranks at the same moment.

It is recognised by the readers' own words: torch's zip reader, pickle, safetensors, transformers,
HDF5. Files that can be read and hold other weights than the model are `state-dict-mismatch`; a full
disk under a save is `disk-full`.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import fixes, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, statement, text_of, weigh_statement
from trainprobe.signatures.messages import message

WORDING = message("checkpoint-corrupt")
EMPTY = "Ran out of input"
READS = message("checkpoint-corrupt.reads")
READERS = re.compile(
    r"torch/serialization\.py|torch/hub\.py|/joblib/|safetensors|/transformers/modeling_utils"
    r"|torch/distributed/checkpoint"
)
FILE = re.compile(r"([\w./~+-]{0,300}\.(?:pth?|bin|ckpt|safetensors|tar|h5|hdf5|pkl|npz))\b")
FIXES = """
See what it is
    ls -l {file}; head -c 100 {file}
    some 130 bytes that begin with `version https://git-lfs`: a pointer, run git lfs pull
[disruptive] Take an older checkpoint, or fetch it again
    rm {file}   (then download again, or resume from the one before)
Save so that a kill cannot tear it
    torch.save(state, path + '.tmp'); os.replace(path + '.tmp', path), on one rank only
"""


def _in_reader(scene: Scene) -> bool:
    frames = scene.origin.frames if scene.origin is not None else ()
    return any(READERS.search(frame.file) for frame in frames)


def _read_empty(scene: Scene) -> Weighings:
    """An empty file was read; a spawned child without a parent reads an empty stream as well."""
    origin = scene.origin
    if origin is None or EMPTY not in text_of(origin):
        return
    if _in_reader(scene):
        says = f"A reader of weights met an empty file: {EMPTY}"
        yield weighing(26, "suspects-log", says, origin)
    elif not origin.frames and (read := statement(scene, READS)) is not None:
        says = f"An empty file was read ({EMPTY}), beside «{short(read.text, 80)}»"
        yield weighing(13, "suspects-log", says, read.fact)


def _weigh(scene: Scene) -> Weighings:
    found = tuple(weigh_statement(scene, WORDING)) or tuple(_read_empty(scene))
    if found:
        yield from found
        if _in_reader(scene):
            says = "The traceback ends in a reader of weights"
            yield weighing(6, "suspects-stack", says, scene.origin)
        yield from first_to_fail(scene)


def _file(scene: Scene) -> str:
    """The file, if the message or the user's line names it."""
    found, origin = statement(scene, WORDING), scene.origin
    texts = [found.text] if found is not None else []
    if origin is not None:
        texts += [text_of(origin), *(frame.text for frame in origin.frames)]
    return next((match.group(1) for text in texts if (match := FILE.search(text))), "")


def _summary(scene: Scene) -> str:
    found, file = statement(scene, WORDING), _file(scene) or "A file of weights"
    what = short(found.text, 140) if found is not None else "it is empty"
    place = f", read{scene.at_own_line}," if scene.at_own_line else ""
    return f"{file}{place} is cut short or of another kind: {what}"


CAUSE = Cause(
    id="checkpoint-corrupt",
    title="A file of weights is cut short or of another kind",
    weigh=_weigh,
    summary=_summary,
    fixes=lambda scene: fixes(FIXES, file=_file(scene) or "FILE"),
    ranks=nobody,
    would_settle="ls -l and head -c 100 of the file",
    refines="user-exception",
    accounts_for=("unpicklable-dataset",),
    wording=WORDING,
)
