"""A shuffled DataLoader without a DistributedSampler in a job of several ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint import flow, ranks
from trainprobe.lint.calls import Call, class_and_bases
from trainprobe.lint.expressions import resolved_argument
from trainprobe.lint.jobs import STARTS, WRAPS, calls_in_job, job_modules
from trainprobe.lint.loaders import dataset_of, loaders, makes_own_batches
from trainprobe.lint.mentions import is_run_by, mentions
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.values import UNKNOWN

RULE = Rule(
    id="missing-sampler",
    cause="multi-rank-mismatch",
    title="A loader without DistributedSampler",
    why=(
        "Every rank reads all rows: ranks train on the same data, and adding ranks does not shorten"
        " an epoch."
    ),
    fix=(
        "Pass sampler=DistributedSampler(dataset) instead of shuffle=True, and call"
        " sampler.set_epoch(epoch) in each epoch."
    ),
    # rows are mostly cut elsewhere, where that cannot be seen: docs/lint-precision.md
    confidence=0.45,
)


PLAIN = (
    "torch.utils.data.RandomSampler()",
    "torch.utils.data.sampler.RandomSampler()",
    "torch.utils.data.WeightedRandomSampler()",
)
# These bring a sampler of their own, or the job cuts the data itself.
ELSEWHERE = re.compile(
    r".*(DistributedSampler|BatchSampler)|split_dataset_by_node|Accelerator"
    r"|Lightning(Data)?Module|shard"
)


def find(program: Program) -> Iterator[Finding]:
    for call in loaders(program):
        if not _shuffles(program, call) or not _is_wrapped(program, call.module):
            continue
        cls = dataset_of(program, call)
        iterates = cls is not None and any(
            kind.endswith(".IterableDataset") for kind in class_and_bases(program, cls.full_name)
        )
        if (
            iterates
            or flow.guards(program, call.module, call.node)
            or _is_elsewhere(program, call.module)
            or _is_cut_by_hand(program, call)
        ):
            continue
        message = (
            "This DataLoader shuffles without a DistributedSampler, in a job that trains one model"
            " on several ranks."
        )
        yield RULE.finding(call.module, call.node, message)


def _shuffles(program: Program, call: Call) -> bool:
    """Whether it certainly draws its rows at random, without any other sampler."""
    if not makes_own_batches(program, call):
        return False
    sampler = resolved_argument(program, call, "sampler", 3)
    if sampler is not None:
        if program.dotted(sampler.module, sampler.node) in PLAIN:
            return True
        if program.value(sampler.module, sampler.node) is not None:
            return False
    shuffle = resolved_argument(program, call, "shuffle", 2)
    if shuffle is None:
        return False
    value = program.value(shuffle.module, shuffle.node)
    return value is True or (
        value is UNKNOWN and sampler is not None and isinstance(shuffle.node, ast.Compare)
    )


def _is_wrapped(program: Program, module: Module) -> bool:
    return bool(calls_in_job(program, module, *WRAPS)) and bool(
        calls_in_job(program, module, *STARTS)
    )


def _is_cut_by_hand(program: Program, call: Call) -> bool:
    """Whether the function that makes the loader takes this rank's part of something, or gives its
    rank and the number of ranks to what makes the rows.
    """
    module = call.module
    holder = module.scope_of(call.node)
    for part in module.of(ast.Subscript):
        if module.scope_of(part) is holder and any(
            isinstance(each, ast.expr) and ranks.kind_of(program, module, each) == "rank"
            for each in ast.walk(part.slice)
        ):
            return True
    for made in module.of(ast.Call):
        given = [*made.args, *(keyword.value for keyword in made.keywords)]
        if (
            module.scope_of(made) is holder
            and any("world_size" in module.source_of(each) for each in given)
            and any(ranks.kind_of(program, module, each) == "rank" for each in given)
            and program.called(module, made) is not None
        ):
            return True
    return False


def _is_elsewhere(program: Program, module: Module) -> bool:
    modules = job_modules(program, module)
    return is_run_by(program, modules, "accelerate", "deepspeed") or any(
        ELSEWHERE.fullmatch(name) for item in modules for name in mentions(program, item).names
    )
