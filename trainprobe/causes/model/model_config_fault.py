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
from trainprobe.causes.measured import says, weigh_measures, worst
from trainprobe.causes.model_stress import fixes_for, stressed_summary
from trainprobe.causes.phrases import Fixes, sentence
from trainprobe.causes.scene import Scene, Weighings

MEASURED = "config."


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_measures(scene, MEASURED)


def _summary(scene: Scene) -> str:
    number = worst(scene, MEASURED)
    return stressed_summary(scene.group, MEASURED) or sentence(
        "A configuration is accepted and does not"
        f" work{f': {says(number)}' if number is not None else ''}"
    )


def _fixes(scene: Scene) -> Fixes:
    return fixes_for(scene, MEASURED)


CAUSE = Cause(
    id="model-config-fault",
    title="A configuration is accepted and does not work",
    modes=("check",),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="trainprobe diagnose --only model_stress with --model, --sample and --fuzz 50",
)
