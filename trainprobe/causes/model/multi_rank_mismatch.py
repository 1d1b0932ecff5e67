"""Several ranks do not compute what one rank computes.

The loss is scaled by the wrong number, a sampler gives ranks the same samples, buffers or
parameters are not the same on all ranks, or seeds are. Each rank works; the result is another than
that of a single process on the same global batch.

It is recognised by the measurements `ranks.*` (losses and gradients against a single process), and
by libraries that compare the ranks' parameters or gradients and say that they differ.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import says, weigh_measured_or_stated, worst
from trainprobe.causes.model_stress import stressed_fixes, stressed_summary
from trainprobe.causes.phrases import Fixes, fix, short
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.causes.statements import statement
from trainprobe.signatures.messages import message

WORDING = message("multi-rank-mismatch")


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_measured_or_stated(scene, "ranks.", WORDING, log_points=26)


def _summary(scene: Scene) -> str:
    if told := stressed_summary(scene.group, "ranks."):
        return told
    number, heard = worst(scene, "ranks."), statement(scene, WORDING)
    what = (
        says(number)
        if number is not None
        else short(heard.text, 160)
        if heard is not None
        else "losses differ"
    )
    return f"The ranks do not hold or compute the same model: {what}"


def _fixes(scene: Scene) -> Fixes:
    if found := stressed_fixes(scene, "ranks."):
        return found
    return (
        fix(
            "Build the same model on every rank",
            "no branch on the rank in the constructor; load the same checkpoint on all, or"
            " broadcast from rank 0",
        ),
        fix(
            "Compare the ranks",
            "print(rank, sum(p.double().sum() for p in model.parameters()),"
            " len(list(model.parameters())))   before wrapping",
        ),
        fix(
            "Average, and sample, as one process would",
            "DistributedSampler with set_epoch(); divide the loss by the global number of tokens",
        ),
    )


CAUSE = Cause(
    id="multi-rank-mismatch",
    title="The ranks do not compute what one rank computes",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle=(
        "one step of one process on the global batch, and one of N ranks, with losses and gradient"
        " norms side by side"
    ),
    refines="user-exception",
    accounts_for=("collective-shape-mismatch", "rank-divergent-forward"),
    wording=WORDING,
)
