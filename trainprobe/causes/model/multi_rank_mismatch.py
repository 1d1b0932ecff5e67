"""Several ranks do not compute what one rank computes.

The loss is scaled by the wrong number, a sampler gives ranks the same samples, buffers or parameters are not the same on all ranks, or seeds
are. Each rank works; the result is another than that of a single process on the same global batch.

It is recognised by the measurements `ranks.*` (losses and gradients against a single process), and by libraries that compare the ranks'
parameters or gradients and say that they differ.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import says, weigh_measured_and_said, worst
from trainprobe.causes.scene import Scene
from trainprobe.causes.spoken import said
from trainprobe.causes.stressed import stressed_fixes, stressed_summary
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# torch/csrc/distributed/c10d/reducer.cpp (verify_params_across_processes), fairseq/trainer.py, Megatron-LM and DeepSpeed's checks across replicas.
WORDING = (
    r"DDP expects same model across all ranks|in this process with (?:shape|sizes) .{0,120}appears not to match|[Gg]radients are inconsistent between workers"
    r"|[Pp]arameter hash(?:es)? (?:not matching|mismatch).{0,20}across|parameters are not (?:the same|consistent) across|inconsistent (?:params|parameters) across ranks"
)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    yield from weigh_measured_and_said(scene, "ranks.", WORDING, log_points=26)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    if told := stressed_summary(group, "ranks."):
        return told
    scene = Scene(facts, group)
    number, heard = worst(scene, "ranks."), said(scene, WORDING)
    what = says(number) if number is not None else short(heard.text, 160) if heard is not None else "losses differ"
    return sentence(f"The ranks do not hold or compute the same model: {what}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    if found := stressed_fixes(scene, "ranks."):
        return found
    return (
        fix(scene, "Build the same model on every rank", "no branch on the rank in the constructor; load the same checkpoint on all, or broadcast from rank 0"),
        fix(scene, "Compare the ranks", "print(rank, sum(p.double().sum() for p in model.parameters()), len(list(model.parameters())))   before wrapping"),
        fix(scene, "Average, and sample, as one process would", "DistributedSampler with set_epoch(); divide the loss by the global number of tokens"),
    )


CAUSE = Cause(
    id="multi-rank-mismatch",
    title="The ranks do not compute what one rank computes",
    means="N ranks do not compute what one rank computes on the same global batch.",
    telling="Losses or gradients that differ from a single process; parameters that differ between ranks.",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="one step of one process on the global batch, and one of N ranks, with losses and gradient norms side by side",
    refines="user-exception",
    accounts_for=("collective-shape-mismatch", "rank-divergent-forward"),
    wording=WORDING,
)
