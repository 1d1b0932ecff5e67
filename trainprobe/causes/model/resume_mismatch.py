"""A resumed run is not the run that was saved.

The optimizer's state, the schedule, the random numbers or the place in the data are not in the
checkpoint, or belong to another set of parameters or another number of ranks. Some libraries refuse
to load that; others go on, and the loss jumps.

It is recognised by the words with which optimizers and frameworks refuse a state, and by the
measurements `resume.*`: four steps at once against two, a save, a load and two more. In a live job
that hangs it is recognised by a loop of steps that began at another number on some ranks, as where
each resumes from the newest file of its own.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.measured import measured_or_stated, measured_summary, stressed_or
from trainprobe.causes.parting_values import begun_apart
from trainprobe.causes.phrases import Fixes, fixes
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import statement
from trainprobe.signatures.messages import message

WORDING = message("resume-mismatch")
MEASURED = "resume."
OTHER_WORLD = """
Resume on as many ranks as saved
    start with the world size that the message names
Or take the weights alone
    deepspeed: load_optimizer_states=False, or convert with ds_to_universal.py; torch:
        torch.distributed.checkpoint
"""
OTHER_STATE = """
Build the optimizer over the same parameters
    the same freezing, the same groups and the same order as when it was saved
Save all of it
    model, optimizer, lr_scheduler, scaler, torch.get_rng_state() of every rank, epoch and place in
        the data
Or start the optimizer anew, knowingly
    load the model only, with a new warm-up
"""


APART = """
Resume from one checkpoint on all ranks
    let rank 0 choose it and broadcast the name, or take the newest that all have:
        step = torch.tensor(step); dist.all_reduce(step, op=dist.ReduceOp.MIN)
Let a save count only when all ranks have made it
    a marker file that rank 0 writes after a barrier, without which no rank takes that checkpoint
"""


def _weigh(scene: Scene) -> Weighings:
    if scene.group.mode != "hang":
        yield from _told(scene)
    elif (apart := begun_apart(scene)) is not None:
        says = f"Not all ranks began at the same step: {apart}"
        yield weighing(26, "suspects-stack", says, *apart.facts)


_told = measured_or_stated(MEASURED, WORDING)


def _summary(scene: Scene) -> str:
    if scene.group.mode == "hang" and (apart := begun_apart(scene)) is not None:
        return (
            f"The ranks have not resumed at the same step: {apart}. So they come to different calls"
        )
    return _usual(scene)


_usual = measured_summary(
    MEASURED,
    "The run that is resumed is not the one that was saved",
    WORDING,
    otherwise="the states differ",
)


def _ranks(scene: Scene) -> tuple[int, ...]:
    """The fewest that began at another step; where nobody knows which, no particular ones."""
    apart = begun_apart(scene) if scene.group.mode == "hang" else None
    sides = apart.camps if apart is not None else ()
    return sides[0] if len(sides) == 2 and len(sides[0]) < len(sides[1]) else ()


def _fixes(scene: Scene) -> Fixes:
    if scene.group.mode == "hang":
        return fixes(APART)
    found = statement(scene, WORDING)
    return fixes(OTHER_WORLD if found and "world size" in found.text else OTHER_STATE)


CAUSE = Cause(
    id="resume-mismatch",
    title="The resumed run is not the saved one",
    modes=("crash", "check", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=stressed_or(MEASURED, _fixes),
    ranks=_ranks,
    would_settle=(
        "four steps at once against two steps, a save, a load and two steps, with the same seed"
    ),
    refines="user-exception",
    accounts_for=(
        "world-size-mismatch",
        "rank-conditional-collective",
        "collective-order-mismatch",
        "uneven-inputs",
        "rank-divergent-forward",
    ),
    wording=WORDING,
)
