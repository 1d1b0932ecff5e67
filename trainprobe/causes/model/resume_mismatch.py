"""A resumed run is not the run that was saved.

The optimizer's state, the schedule, the random numbers or the place in the data are not in the
checkpoint, or belong to another set of parameters or another number of ranks. Some libraries refuse
to load that; others go on, and the loss jumps.

It is recognised by the words with which optimizers and frameworks refuse a state, and by the
measurements `resume.*`: four steps at once against two, a save, a load and two more.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import says, weigh_measured_or_stated, worst
from trainprobe.causes.model_stress import stressed_fixes, stressed_summary
from trainprobe.causes.phrases import Fixes, fix, short
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.causes.statements import statement
from trainprobe.signatures.messages import message

WORDING = message("resume-mismatch")


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_measured_or_stated(scene, "resume.", WORDING)


def _summary(scene: Scene) -> str:
    if told := stressed_summary(scene.group, "resume."):
        return told
    number, heard = worst(scene, "resume."), statement(scene, WORDING)
    what = (
        says(number)
        if number is not None
        else short(heard.text, 160)
        if heard is not None
        else "the states differ"
    )
    return f"The run that is resumed is not the one that was saved: {what}"


def _fixes(scene: Scene) -> Fixes:
    if found := stressed_fixes(scene, "resume."):
        return found
    heard = statement(scene, WORDING)
    if heard is not None and "world size" in heard.text:
        return (
            fix(
                "Resume on as many ranks as saved",
                "start with the world size that the message names",
            ),
            fix(
                "Or take the weights alone",
                "deepspeed: load_optimizer_states=False, or convert with ds_to_universal.py; torch:"
                " torch.distributed.checkpoint",
            ),
        )
    return (
        fix(
            "Build the optimizer over the same parameters",
            "the same freezing, the same groups and the same order as when it was saved",
        ),
        fix(
            "Save all of it",
            "model, optimizer, lr_scheduler, scaler, torch.get_rng_state() of every rank, epoch and"
            " place in the data",
        ),
        fix("Or start the optimizer anew, knowingly", "load the model only, with a new warm-up"),
    )


CAUSE = Cause(
    id="resume-mismatch",
    title="The resumed run is not the saved one",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle=(
        "four steps at once against two steps, a save, a load and two steps, with the same seed"
    ),
    refines="user-exception",
    accounts_for=("world-size-mismatch",),
    wording=WORDING,
)
