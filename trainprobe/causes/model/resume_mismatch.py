"""A resumed run is not the run that was saved.

The optimizer's state, the schedule, the random numbers or the place in the data are not in the
checkpoint, or belong to another set of parameters or another number of ranks. Some libraries refuse
to load that; others go on, and the loss jumps.

It is recognised by the words with which optimizers and frameworks refuse a state, and by the
measurements `resume.*`: four steps at once against two, a save, a load and two more.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import measured_or_stated, measured_summary, stressed_or
from trainprobe.causes.phrases import Fixes, fixes
from trainprobe.causes.scene import Scene
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


def _fixes(scene: Scene) -> Fixes:
    found = statement(scene, WORDING)
    return fixes(OTHER_WORLD if found and "world size" in found.text else OTHER_STATE)


CAUSE = Cause(
    id="resume-mismatch",
    title="The resumed run is not the saved one",
    modes=("crash", "check"),
    weigh=measured_or_stated(MEASURED, WORDING),
    summary=measured_summary(
        MEASURED,
        "The run that is resumed is not the one that was saved",
        WORDING,
        otherwise="the states differ",
    ),
    fixes=stressed_or(MEASURED, _fixes),
    ranks=nobody,
    would_settle=(
        "four steps at once against two steps, a save, a load and two steps, with the same seed"
    ),
    refines="user-exception",
    accounts_for=("world-size-mismatch",),
    wording=WORDING,
)
