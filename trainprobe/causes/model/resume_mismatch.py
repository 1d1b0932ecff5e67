"""A resumed run is not the run that was saved.

The optimizer's state, the schedule, the random numbers or the place in the data are not in the checkpoint, or belong to another set of parameters or
another number of ranks. Some libraries refuse to load that; others go on, and the loss jumps.

It is recognised by the words with which optimizers and frameworks refuse a state, and by the measurements `resume.*`: four steps at once against
two, a save, a load and two more.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import says, weigh_measured_and_said, worst
from trainprobe.causes.scene import Scene
from trainprobe.causes.spoken import said
from trainprobe.causes.stressed import stressed_fixes, stressed_summary
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# torch/optim/optimizer.py (load_state_dict), Lightning's checkpoint connector, DeepSpeed's runtime/zero, Megatron-LM.
WORDING = (
    r"loaded state dict contains a parameter group that doesn't match the size|loaded state dict has a different number of parameter groups"
    r"|Trying to restore (?:optimizer|training) state but checkpoint contains only the model"
    r"|checkpoint being loaded used a DP world size of \d+ but the current world size is \d+|optimizer state partitioning with a new world size is not"
    r"|[Ll]oading a checkpoint (?:for|with) .{0,60}different (?:number of|world) |sampler checkpoint .{0,40}does not match"
)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    yield from weigh_measured_and_said(scene, "resume.", WORDING)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    if told := stressed_summary(group, "resume."):
        return told
    scene = Scene(facts, group)
    number, heard = worst(scene, "resume."), said(scene, WORDING)
    what = says(number) if number is not None else short(heard.text, 160) if heard is not None else "the states differ"
    return sentence(f"The run that is resumed is not the one that was saved: {what}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    if found := stressed_fixes(scene, "resume."):
        return found
    heard = said(scene, WORDING)
    if heard is not None and "world size" in heard.text:
        return (
            fix(scene, "Resume on as many ranks as saved", "start with the world size that the message names"),
            fix(
                scene,
                "Or take the weights alone",
                "deepspeed: load_optimizer_states=False, or convert with ds_to_universal.py; torch: torch.distributed.checkpoint",
            ),
        )
    return (
        fix(scene, "Build the optimizer over the same parameters", "the same freezing, the same groups and the same order as when it was saved"),
        fix(scene, "Save all of it", "model, optimizer, lr_scheduler, scaler, torch.get_rng_state() of every rank, epoch and place in the data"),
        fix(scene, "Or start the optimizer anew, knowingly", "load the model only, with a new warm-up"),
    )


CAUSE = Cause(
    id="resume-mismatch",
    title="The resumed run is not the saved one",
    means="A resumed run is not the run that was saved.",
    telling="An optimizer that refuses the saved state; losses that part after a save and a load.",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="four steps at once against two steps, a save, a load and two steps, with the same seed",
    refines="user-exception",
    accounts_for=("world-size-mismatch",),
    wording=WORDING,
)
