"""In eval() the same batch gives another result each time.

Dropout that is called as a function without `training=self.training`, noise that is added in every
mode, a module that eval() does not reach because it stands in a list. Validation is then lower than
it could be and changes from run to run, and nothing that is compared with it can be trusted.

It is recognised only where it was measured: the measurements `evaluation.*` of the model's stress
test, two forward passes in eval() on one batch with different random numbers, followed module by
module to the first whose outputs part. Two that agree rule it out.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import says, weigh_measures, worst
from trainprobe.causes.model_stress import fixes_for, stressed_summary
from trainprobe.causes.phrases import Fixes, sentence
from trainprobe.causes.scene import Scene, Weighings

MEASURED = "evaluation."


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_measures(scene, MEASURED)


def _summary(scene: Scene) -> str:
    number = worst(scene, MEASURED)
    return stressed_summary(scene.group, MEASURED) or sentence(
        f"The model is not still in eval(){f': {says(number)}' if number is not None else ''}"
    )


def _fixes(scene: Scene) -> Fixes:
    return fixes_for(scene, MEASURED)


CAUSE = Cause(
    id="eval-not-deterministic",
    title="The model is not still in eval()",
    modes=("check",),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle=(
        "trainprobe diagnose --only model_stress with --model and --sample: it runs one batch twice"
        " in eval()"
    ),
)
