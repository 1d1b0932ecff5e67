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
from trainprobe.causes.measured import measured_or_stated, stressed_or, stressed_summary_or
from trainprobe.causes.phrases import fix, fixes, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import all_of, confirmed, stated
from trainprobe.facts import RankException
from trainprobe.signatures.messages import message

WORDING = message("ddp-unused-parameters")
MEASURED = "unused."
INDICES = re.compile(
    r"Parameter(?: indices|s)? which did not receive grad for rank \d{1,7}: ([\w., ]{1,400})"
)


def _named_parameters(scene: Scene) -> Weighings:
    if names := _parameters(scene):
        yield weighing(3, "source", f"It says which: {names}", scene.origin)


def _parameters(scene: Scene) -> str:
    texts = [exception.message for exception in scene.exceptions(scene.suspects)]
    texts += [event.line for event in scene.events("ddp-unused-parameters")]
    found = (match.group(1) for text in texts if (match := INDICES.search(text)))
    names = next(found, "").strip(" .")
    if _NUMBERS.fullmatch(names):
        many = "parameters" if len(names.split()) > 1 else "parameter"
        names = f"{many} {', '.join(names.replace(',', ' ').split())}"
    return short(names, 120)


def _ranks(scene: Scene) -> tuple[int, ...]:
    """Nobody, since the fault is the model's, unless only some ranks say so."""
    says = {fact.rank for fact in scene.of(RankException) if re.search(WORDING, fact.message)}
    return () if not says or len(says) == len(scene.world) else scene.ranks


def _summary(scene: Scene) -> str:
    names = f" ({_parameters(scene)})" if _parameters(scene) else ""
    return f"DDP waits for gradients of parameters that the loss does not use{names}"


LET_NAMES = fix(
    "Let the names be printed", "TORCH_DISTRIBUTED_DEBUG=DETAIL in the environment of the next run"
)
MEND = fixes("""
    Use or remove those parameters
        make every output take part in the loss, or set requires_grad_(False) on the unused
            part
    Or let DDP look for them
        DistributedDataParallel(model, find_unused_parameters=True)   (costs a walk over the
            graph in each step)
""")
_NUMBERS = re.compile(r"[\d, ]+")
_NAMES = re.compile(r"[A-Za-z_]\w*\.\w")


CAUSE = Cause(
    id="ddp-unused-parameters",
    title="DDP waits for parameters without a gradient",
    weigh=all_of(measured_or_stated(MEASURED), confirmed(stated(WORDING), _named_parameters)),
    summary=stressed_summary_or(MEASURED, _summary),
    fixes=stressed_or(
        MEASURED,
        lambda scene: (
            *((LET_NAMES,) if not _NAMES.search(_parameters(scene)) else ()),
            *MEND,
        ),
    ),
    ranks=_ranks,
    would_settle="run once with TORCH_DISTRIBUTED_DEBUG=DETAIL, which prints the names",
    refines="user-exception",
    wording=WORDING,
)
