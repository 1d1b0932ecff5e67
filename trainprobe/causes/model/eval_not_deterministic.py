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
from trainprobe.causes.measured import measured_or_stated, measured_summary
from trainprobe.causes.model_stress import fixes_for

MEASURED = "evaluation."

CAUSE = Cause(
    id="eval-not-deterministic",
    title="The model is not still in eval()",
    modes=("check",),
    weigh=measured_or_stated(MEASURED),
    summary=measured_summary(MEASURED, "The model is not still in eval()"),
    fixes=lambda scene: fixes_for(scene, MEASURED),
    ranks=nobody,
    would_settle=(
        "trainprobe diagnose --only model_stress with --model and --sample: it runs one batch twice"
        " in eval()"
    ),
)
