"""A GPU computes wrong results without an error.

A worn or badly cooled GPU, or a link to it, changes bits that no counter sees. Losses drift, NaN comes from nowhere, ranks disagree, and the same step gives
another result the second time.

It is recognised only where something measured it: a burn-in or a vendor's diagnosis that found wrong values, or a check that repeated an exact computation. A loss
that becomes NaN is no proof of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import said
from trainprobe.causes.words import fix, sentence, short, subject
from trainprobe.facts import Facts, LogEvent
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# gpu-burn, nccl-tests, DCGM's diagnosis, and programs that repeat a computation.
WORDING = (
    r"GPU \d{1,3}: FAULTY|(?:[1-9]\d{0,12}) \(WARNING!\)|(?i:miscompares? (?:detected|found|at))|Out of bounds values : [1-9]\d* FAILED"
    r"|(?i:(?:silent data corruption|SDC) (?:was )?detected)|GEMM mismatch"
)


def _measured(scene: Scene) -> LogEvent | None:
    return next(iter(scene.events("wrong-results")), None)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    event = _measured(scene)
    heard = said(scene, WORDING, scene.world) if event is None else None
    if event is not None:
        yield weighing(26, "gpu", f"A measurement found wrong results: {short(event.line, 120)}", event)
    elif heard is not None:
        yield weighing(26, "gpu", f"A measurement found wrong results: {short(heard.text, 120)}", heard.fact)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    event, heard = _measured(scene), said(scene, WORDING, scene.world)
    gpu = f"GPU {event.captured['gpu']}" if event is not None and event.captured.get("gpu") else "A GPU"
    line = event.line if event is not None else heard.text if heard is not None else ""
    who = f" of {subject(scene)[:1].lower()}{subject(scene)[1:]}" if scene.group.ranks else ""
    return sentence(f"{gpu}{who} computes wrong results without an error: {short(line, 120)}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "Measure again, on each GPU alone", "dcgmi diag -r 3 -i INDEX   (no job may run there)", "CUDA_VISIBLE_DEVICES=INDEX gpu_burn 300"),
        fix(
            scene,
            "Take the node out of service",
            "scontrol update nodename=<NODE> state=drain reason='wrong results'",
            risk="needs-admin",
            who="admin",
        ),
        fix(scene, "Go back to a checkpoint from before", "resume from the last one whose evaluation was right"),
    )


CAUSE = Cause(
    id="gpu-silent-corruption",
    title="A GPU computes wrong results",
    means="A GPU computes wrong results without an error.",
    telling="Repeating an exact computation, or comparing ranks, gives differences.",
    modes=("crash", "hang", "check", "slow"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="dcgmi diag -r 3 on the node, and the same exact computation on each of its GPUs",
    accounts_for=("nan-loss", "user-exception"),
)
