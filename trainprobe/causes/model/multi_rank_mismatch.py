"""Several ranks do not compute what one rank computes.

The loss is scaled by the wrong number, a sampler gives ranks the same samples, buffers or
parameters are not the same on all ranks, or seeds are. Each rank works; the result is another than
that of a single process on the same global batch.

It is recognised by the measurements `ranks.*` (losses and gradients against a single process), and
by libraries that compare the ranks' parameters or gradients and say that they differ.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.collective_timeouts import Timeouts
from trainprobe.causes.measured import measured_or_stated, measured_summary, stressed_or
from trainprobe.causes.phrases import fixes
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import confirmed
from trainprobe.signatures.messages import message
from trainprobe.waits.divergence import call_says

WORDING = message("multi-rank-mismatch")
MEASURED = "ranks."
FIXES = """
Build the same model on every rank
    no branch on the rank in the constructor; load the same checkpoint on all, or broadcast from
        rank 0
Compare the ranks
    print(rank, sum(p.double().sum() for p in model.parameters()),
        len(list(model.parameters())))   before wrapping
Average, and sample, as one process would
    DistributedSampler with set_epoch(); divide the loss by the global number of tokens
"""


def _given_up(scene: Scene) -> Weighings:
    """What is compared comes by a collective: where that was given up, nothing had come."""
    calls = Timeouts(scene).calls
    if calls:
        says = f"The ranks had given up {call_says(calls[0])}: what was compared is what never came"
        yield weighing(-26, "other-stacks", says, calls[0])


CAUSE = Cause(
    id="multi-rank-mismatch",
    title="The ranks do not compute what one rank computes",
    modes=("crash", "check"),
    weigh=confirmed(measured_or_stated(MEASURED, WORDING, log_points=26), _given_up),
    summary=measured_summary(
        MEASURED,
        "The ranks do not hold or compute the same model",
        WORDING,
        otherwise="losses differ",
    ),
    fixes=stressed_or(MEASURED, fixes(FIXES)),
    ranks=nobody,
    would_settle=(
        "one step of one process on the global batch, and one of N ranks, with losses and gradient"
        " norms side by side"
    ),
    refines="user-exception",
    accounts_for=("collective-shape-mismatch", "rank-divergent-forward"),
    wording=WORDING,
)
