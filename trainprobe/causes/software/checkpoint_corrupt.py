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
from trainprobe.causes.phrases import Fixes, fixes, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import (
    Statement,
    first_to_fail,
    statement,
    text_of,
    weigh_statement,
)
from trainprobe.facts import RankException
from trainprobe.signatures.messages import message

WORDING = message("checkpoint-corrupt")
EMPTY = "Ran out of input"
READS = message("checkpoint-corrupt.reads")
READERS = (
    "torch/serialization.py",
    "torch/hub.py",
    "/joblib/",
    "safetensors",
    "/transformers/modeling_utils",
    "torch/distributed/checkpoint",
)
FILE = re.compile(r"([\w./~+-]{0,300}\.(?:pth?|bin|ckpt|safetensors|tar|h5|hdf5|pkl|npz))\b")


def _empty_file(scene: Scene) -> RankException | None:
    """A reader of weights that met an empty file; in a spawned child it is an echo."""
    origin = scene.origin
    if (
        origin is not None
        and EMPTY in text_of(origin)
        and any(part in frame.file for frame in origin.frames for part in READERS)
    ):
        return origin
    return None


def _read_beside(scene: Scene) -> Statement | None:
    """A fragment without whole frames: the call of a reader stands near the exception."""
    origin = scene.origin
    if origin is None or origin.frames or EMPTY not in text_of(origin):
        return None
    return statement(scene, READS)


def _weigh(scene: Scene) -> Weighings:
    heard, empty = tuple(weigh_statement(scene, WORDING)), _empty_file(scene)
    yield from heard
    if empty is None and not heard and (read := _read_beside(scene)) is not None:
        says = (
            f"A file that was read was empty ({EMPTY}), and beside it stands"
            f" «{short(read.text, 80)}»"
        )
        yield weighing(13, "suspects-log", says, read.fact)
        yield from first_to_fail(scene)
    if empty is not None:
        yield weighing(
            26, "suspects-log", "A reader of weights met an empty file: Ran out of input", empty
        )
    if heard or empty is not None:
        origin = scene.origin
        if origin is not None and any(
            part in frame.file for frame in origin.frames for part in READERS
        ):
            yield weighing(6, "suspects-stack", "The traceback ends in a reader of weights", origin)
        yield from first_to_fail(scene)


def _file(scene: Scene) -> str:
    """The file, where the message or the user's line names it."""
    heard, origin = statement(scene, WORDING), scene.origin
    texts = [
        heard.text if heard is not None else "",
        text_of(origin) if origin is not None else "",
        *(frame.text for frame in (origin.frames if origin else ())),
    ]
    return next((match.group(1) for text in texts if (match := FILE.search(text))), "")


def _summary(scene: Scene) -> str:
    heard = statement(scene, WORDING)
    what = short(heard.text, 140) if heard is not None else "it is empty"
    return (
        f"{_file(scene) or 'A file of weights'}, read{scene.at_own_line}, is"
        f" cut short or of another kind: {what}"
    )


FIXES = """
See what it is
    ls -l {file}; head -c 100 {file}
    some 130 bytes that begin with `version https://git-lfs`: a pointer, run git lfs pull
[disruptive] Take an older checkpoint, or fetch it again
    rm {file}   (then download again, or resume from the one before)
Save so that a kill cannot tear it
    torch.save(state, path + '.tmp'); os.replace(path + '.tmp', path), on one rank only
"""


def _fixes(scene: Scene) -> Fixes:
    file = _file(scene) or "FILE"
    return fixes(FIXES, file=file)


CAUSE = Cause(
    id="checkpoint-corrupt",
    title="A file of weights is cut short or of another kind",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="ls -l and head -c 100 of the file",
    refines="user-exception",
    accounts_for=("unpicklable-dataset",),
    wording=WORDING,
)
