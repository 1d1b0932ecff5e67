"""The model takes a configuration without a word, and fails with it later.

Heads that do not divide the width, an odd size where halves are taken, a feature that was only ever tried with its default. Such a model is built,
and the first step or the first evaluation fails, perhaps on a machine that was waited for.

It is recognised only where it was measured: the measurements `config.*` of the model's stress test, which draws configurations from a seed and shrinks
one that fails until every single change back makes it work. A constructor that refuses a configuration with an error is right, and no finding.
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

MEASURED = "config."


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    yield from weigh_measures(Scene(facts, group), MEASURED)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    number = worst(Scene(facts, group), MEASURED)
    return stressed_summary(group, MEASURED) or sentence(f"A configuration is accepted and does not work{f': {says(number)}' if number is not None else ''}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    return fixes_for(Scene(facts, group), MEASURED)


CAUSE = Cause(
    id="model-config-fault",
    title="A configuration is accepted and does not work",
    means="The model takes a configuration without a word and fails with it, or computes something else.",
    telling="A configuration, shrunk to the smallest that fails, beside one next to it that works.",
    modes=("check",),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="trainprobe diagnose --only model_stress with --model, --sample and --fuzz 50",
)
