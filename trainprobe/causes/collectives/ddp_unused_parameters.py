"""Some parameters get no gradient, and DDP waits for all of them.

DistributedDataParallel reduces every parameter of the model. A branch that is not taken, a head
that the loss does not use or an output that is thrown away leaves parameters without a gradient,
and the next forward pass raises "Expected to have finished reduction".

It is recognised by that message, which lists the parameters' indices, and by the measurements
`unused.*` of the model's stress test: parameters that have no gradient after a backward pass.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.measured import weigh_measures
from trainprobe.causes.model_stress import stressed_fixes, stressed_summary
from trainprobe.causes.phrases import Fixes, fixes, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, statement, weigh_statement
from trainprobe.facts import RankException
from trainprobe.signatures.messages import message

WORDING = message("ddp-unused-parameters")
INDICES = re.compile(
    r"Parameter(?: indices|s)? which did not receive grad for rank \d{1,7}: ([\w., ]{1,400})"
)


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_measures(scene, "unused.")
    if statement(scene, WORDING) is not None:
        yield from weigh_statement(scene, WORDING)
        yield from first_to_fail(scene)
        names = _parameters(scene)
        if names:
            yield weighing(3, "source", f"It names the parameters: {names}", scene.origin)


def _parameters(scene: Scene) -> str:
    texts = [exception.message for exception in scene.exceptions(scene.suspects)] + [
        event.line for event in scene.events("ddp-unused-parameters")
    ]
    found = [
        short(match.group(1).strip(" ."), 120) for text in texts if (match := INDICES.search(text))
    ]
    return found[0] if found else ""


def _nobody(scene: Scene) -> tuple[int, ...]:
    """It is the model's own, not a rank's, unless only some ranks say so."""
    says = {fact.rank for fact in scene.of(RankException) if re.search(WORDING, fact.message)}
    return () if not says or len(says) == len(scene.world) else scene.ranks


def _summary(scene: Scene) -> str:
    if told := stressed_summary(scene.group, "unused."):
        return told
    names = _parameters(scene)
    return (
        "DDP waits for gradients of parameters that the loss does not"
        f" use{f' ({names})' if names else ''}"
    )


def _fixes(scene: Scene) -> Fixes:
    if found := stressed_fixes(scene, "unused."):
        return found
    return fixes("""
        Let the names be printed
            TORCH_DISTRIBUTED_DEBUG=DETAIL in the environment of the next run
        Use or remove those parameters
            make every output take part in the loss, or set requires_grad_(False) on the unused part
        Or let DDP look for them
            DistributedDataParallel(model, find_unused_parameters=True)   (costs a walk over the
                graph in each step)
    """)


CAUSE = Cause(
    id="ddp-unused-parameters",
    title="DDP waits for parameters without a gradient",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_nobody,
    would_settle="run once with TORCH_DISTRIBUTED_DEBUG=DETAIL, which prints the names",
    refines="user-exception",
    wording=WORDING,
)
