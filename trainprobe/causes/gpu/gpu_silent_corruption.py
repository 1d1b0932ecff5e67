"""A GPU computes wrong results without an error.

A worn or badly cooled GPU, or a link to it, changes bits that no counter sees. Losses drift, NaN
comes from nowhere, ranks disagree, and the same step gives another result the second time.

It is recognised only where something measured it: a burn-in or a vendor's diagnosis that found
wrong values, or a check that repeated an exact computation. A loss that becomes NaN is no proof of
it.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.phrases import admin_fix, fix, short, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import statement
from trainprobe.facts import LogEvent
from trainprobe.signatures.messages import message

WORDING = message("gpu-silent-corruption")


def _measured(scene: Scene) -> LogEvent | None:
    return next(iter(scene.events("wrong-results")), None)


def _weigh(scene: Scene) -> Weighings:
    event = _measured(scene)
    heard = statement(scene, WORDING, scene.world) if event is None else None
    if event is not None:
        yield weighing(
            26, "gpu", f"A measurement found wrong results: {short(event.line, 120)}", event
        )
    elif heard is not None:
        yield weighing(
            26, "gpu", f"A measurement found wrong results: {short(heard.text, 120)}", heard.fact
        )


def _summary(scene: Scene) -> str:
    event, heard = _measured(scene), statement(scene, WORDING, scene.world)
    gpu = (
        f"GPU {event.captured['gpu']}"
        if event is not None and event.captured.get("gpu")
        else "A GPU"
    )
    line = event.line if event is not None else heard.text if heard is not None else ""
    who = f" of {subject(scene)[:1].lower()}{subject(scene)[1:]}" if scene.ranks else ""
    return f"{gpu}{who} computes wrong results without an error: {short(line, 120)}"


CAUSE = Cause(
    id="gpu-silent-corruption",
    title="A GPU computes wrong results",
    modes=("crash", "hang", "check", "slow"),
    weigh=_weigh,
    summary=_summary,
    fixes=(
        fix(
            "Measure again, on each GPU alone",
            "dcgmi diag -r 3 -i INDEX   (no job may run there)",
            "CUDA_VISIBLE_DEVICES=INDEX gpu_burn 300",
        ),
        admin_fix(
            "Take the node out of service",
            "scontrol update nodename=<NODE> state=drain reason='wrong results'",
        ),
        fix(
            "Go back to a checkpoint from before",
            "resume from the last one whose evaluation was right",
        ),
    ),
    would_settle="dcgmi diag -r 3 on the node, and the same exact computation on each of its GPUs",
    accounts_for=("nan-loss", "user-exception"),
)
