"""In eval() the same batch gives another result each time.

Dropout that is called as a function without `training=self.training`, noise that is added in every mode, a module that eval() does not reach because
it stands in a list. Validation is then lower than it could be and changes from run to run, and nothing that is compared with it can be trusted.

It is recognised only where it was measured: the measurements `evaluation.*` of the model's stress test, two forward passes in eval() on one batch with
different random numbers, followed module by module to the first whose outputs part. Two that agree rule it out.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import says, weigh_measures, worst
from trainprobe.causes.scene import Scene
from trainprobe.causes.stressed import fixes_for, stressed_summary
from trainprobe.causes.words import sentence
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

MEASURED = "evaluation."


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    yield from weigh_measures(Scene(facts, group), MEASURED)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    number = worst(Scene(facts, group), MEASURED)
    return stressed_summary(group, MEASURED) or sentence(f"The model is not still in eval(){f': {says(number)}' if number is not None else ''}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    return fixes_for(Scene(facts, group), MEASURED)


CAUSE = Cause(
    id="eval-not-deterministic",
    title="The model is not still in eval()",
    means="In eval() the same batch gives another result each time: dropout or noise stays on.",
    telling="Two forward passes in eval() on one batch that differ, and the module in which they part.",
    modes=("check",),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="trainprobe diagnose --only model_stress with --model and --sample: it runs one batch twice in eval()",
)
