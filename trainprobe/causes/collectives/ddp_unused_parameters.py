"""Some parameters get no gradient, and DDP waits for all of them.

DistributedDataParallel reduces every parameter of the model. A branch that is not taken, a head that the loss does not use or an output
that is thrown away leaves parameters without a gradient, and the next forward pass raises "Expected to have finished reduction".

It is recognised by that message, which lists the parameters' indices, and by the measurements `unused.*` of the model's stress test: parameters that
have no gradient after a backward pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.measured import weigh_measures
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.stressed import stressed_fixes, stressed_summary
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts, RankException
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# torch/csrc/distributed/c10d/reducer.cpp, ensure_prior_reduction_finished()
WORDING = (
    r"Expected to have finished reduction in the prior iteration|Parameter(?: indices|s) which did not receive grad for rank"
    r"|[Yy]our training graph has changed in this iteration|not used in producing (?:the )?loss"
)
INDICES = re.compile(r"Parameter(?: indices|s)? which did not receive grad for rank \d{1,7}: ([\w., ]{1,400})")


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    yield from weigh_measures(scene, "unused.")
    if said(scene, WORDING) is not None:
        yield from spoken(scene, WORDING)
        yield from first_to_fail(scene)
        names = _parameters(scene)
        if names:
            yield weighing(3, "source", f"It names the parameters: {names}", scene.origin)


def _parameters(scene: Scene) -> str:
    texts = [exception.message for exception in scene.exceptions(scene.suspects)] + [event.line for event in scene.events("ddp-unused-parameters")]
    found = [short(match.group(1).strip(" ."), 120) for text in texts if (match := INDICES.search(text))]
    return found[0] if found else ""


def _nobody(facts: Facts, group: SuspectGroup) -> tuple[int, ...]:
    """It is the model's own, not a rank's, unless only some ranks say so."""
    scene = Scene(facts, group)
    says = {fact.rank for fact in facts.of(RankException, cell=group.cell) if re.search(WORDING, fact.message)}
    return () if not says or len(says) == len(scene.world) else group.ranks


def _summary(facts: Facts, group: SuspectGroup) -> str:
    if told := stressed_summary(group, "unused."):
        return told
    names = _parameters(Scene(facts, group))
    return sentence(f"DDP waits for gradients of parameters that the loss does not use{f' ({names})' if names else ''}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    if found := stressed_fixes(scene, "unused."):
        return found
    return (
        fix(scene, "Let the names be printed", "TORCH_DISTRIBUTED_DEBUG=DETAIL in the environment of the next run"),
        fix(scene, "Use or remove those parameters", "make every output take part in the loss, or set requires_grad_(False) on the unused part"),
        fix(scene, "Or let DDP look for them", "DistributedDataParallel(model, find_unused_parameters=True)   (costs a walk over the graph in each step)"),
    )


CAUSE = Cause(
    id="ddp-unused-parameters",
    title="DDP waits for parameters without a gradient",
    means="Some parameters take no part in the loss, and DDP waits for the gradients of all.",
    telling="The message that the reduction of the prior iteration did not finish, with parameter indices.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_nobody,
    would_settle="run once with TORCH_DISTRIBUTED_DEBUG=DETAIL, which prints the names",
    refines="user-exception",
    wording=WORDING,
)
