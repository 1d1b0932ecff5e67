"""A forked process uses CUDA although its parent had already used it.

A CUDA context does not survive a fork. A dataset that moves tensors to the GPU inside a loader worker, or a map function that does so in a
forked pool, fails with "Cannot re-initialize CUDA in forked subprocess".

It is recognised by that message.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, user_frame
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# torch/cuda/__init__.py, _lazy_init()
WORDING = r"Cannot re-initialize CUDA in forked subprocess"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    if said(scene, WORDING) is not None:
        yield from spoken(scene, WORDING)
        yield from first_to_fail(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    return sentence(f"A forked worker uses CUDA{f' at {frame.where}' if frame else ''} although its parent had already used it")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    return (
        fix(
            scene,
            "Keep workers on the CPU",
            f"return CPU tensors{f' at {frame.where}' if frame else ' from the dataset'}; move the batch in the training loop: batch.to(device, non_blocking=True)",
        ),
        fix(scene, "Or start workers by spawn", "DataLoader(..., multiprocessing_context='spawn')"),
    )


CAUSE = Cause(
    id="cuda-in-forked-worker",
    title="CUDA is used in a forked process",
    means="A forked child uses CUDA although its parent had initialised it.",
    telling="Cannot re-initialize CUDA in forked subprocess.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="num_workers=0, which has no forked process",
    refines="user-exception",
    wording=WORDING,
)
