"""The model takes a configuration without a word, and fails with it later.

Heads that do not divide the width, an odd size where halves are taken, a feature that was only ever
tried with its default. Such a model is built, and the first step or the first evaluation fails,
perhaps on a machine that was waited for.

It is recognised only where it was measured: the measurements `config.*` of the model's stress test,
which draws configurations from a seed and shrinks one that fails until every single change back
makes it work. A constructor that refuses a configuration with an error is right, and no finding.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import measured_or_stated, measured_summary
from trainprobe.causes.model_stress import fixes_for

MEASURED = "config."

CAUSE = Cause(
    id="model-config-fault",
    title="A configuration is accepted and does not work",
    modes=("check",),
    weigh=measured_or_stated(MEASURED),
    summary=measured_summary(MEASURED, "A configuration is accepted and does not work"),
    fixes=lambda scene: fixes_for(scene, MEASURED),
    ranks=nobody,
    would_settle="trainprobe diagnose --only model_stress with --model, --sample and --fuzz 50",
)
