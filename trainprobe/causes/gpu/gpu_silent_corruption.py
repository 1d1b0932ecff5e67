"""A GPU computes wrong results without an error.

A worn or badly cooled GPU, or a link to it, changes bits that no counter sees. Losses drift, NaN
comes from nowhere, ranks disagree, and the same step gives another result the second time.

It is recognised only where something measured it: a burn-in or a vendor's diagnosis that found
wrong values, or a check that repeated an exact computation. A loss that becomes NaN is no proof of
it.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.phrases import fixes, short, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import statement
from trainprobe.facts import LogEvent
from trainprobe.model.facts import Fact
from trainprobe.signatures.messages import message

WORDING = message("gpu-silent-corruption")


def _measured(scene: Scene) -> tuple[str, Fact] | None:
    """The line that reports wrong results."""
    for event in scene.events("wrong-results"):
        return event.line, event
    found = statement(scene, WORDING, scene.world)
    return (found.text, found.fact) if found is not None else None


def _weigh(scene: Scene) -> Weighings:
    if (found := _measured(scene)) is not None:
        line, fact = found
        says = f"A measurement found wrong results: {short(line, 120)}"
        yield weighing(26, "gpu", says, fact)


def _summary(scene: Scene) -> str:
    line, fact = _measured(scene) or ("", None)
    index = fact.captured.get("gpu") if isinstance(fact, LogEvent) else ""
    who = f" of {subject(scene)[:1].lower()}{subject(scene)[1:]}" if scene.ranks else ""
    gpu = f"GPU {index}" if index else "A GPU"
    return f"{gpu}{who} computes wrong results without an error: {short(line, 120)}"


CAUSE = Cause(
    id="gpu-silent-corruption",
    title="A GPU computes wrong results",
    modes=("crash", "hang", "check", "slow"),
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        Measure again, on each GPU alone
            dcgmi diag -r 3 -i INDEX   (no job may run there)
            CUDA_VISIBLE_DEVICES=INDEX gpu_burn 300
        [admin] Take the node out of service
            scontrol update nodename=<NODE> state=drain reason='wrong results'
        Go back to a checkpoint from before
            resume from the last one whose evaluation was right
    """),
    would_settle="dcgmi diag -r 3 on the node, and the same exact computation on each of its GPUs",
    accounts_for=("nan-loss", "user-exception"),
)
