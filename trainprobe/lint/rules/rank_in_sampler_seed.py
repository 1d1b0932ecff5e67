"""A DistributedSampler whose seed or epoch is another one on each rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import ranks
from trainprobe.lint.calls import calls_ending_in
from trainprobe.lint.expressions import resolved_argument
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program

RULE = Rule(
    id="rank-in-sampler-seed",
    cause="multi-rank-mismatch",
    title="A DistributedSampler with another seed on each rank",
    why=(
        "DistributedSampler deals one shuffled order out to the ranks, so all must shuffle with the"
        " same seed. With a seed of its own a rank deals from another order: rows are read twice,"
        " others never."
    ),
    fix="Give every rank the same seed; let only worker and augmentation seeds differ by rank.",
    confidence=0.85,
)

SAMPLER = "torch.utils.data.DistributedSampler"


def find(program: Program) -> Iterator[Finding]:
    for call in calls_ending_in(program, "DistributedSampler"):
        seed = resolved_argument(program, call, "seed", 4) if call.name == SAMPLER else None
        if seed is not None and _differs(program, seed.module, seed.node):
            message = f"The seed {seed.module.source_of(seed.node)} differs between ranks."
            yield RULE.finding(call.module, call.node, message)


def _differs(program: Program, module: Module, node: ast.expr) -> bool:
    """Whether a seed is a number of the rank or calculated from it, of a whole job's group."""
    return ranks.kind_of(program, module, node) in {"rank", "derived"}
