"""A shuffled DataLoader without a DistributedSampler in a job of several ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint import flow
from trainprobe.lint.loaders import dataset_of, loaders
from trainprobe.lint.mentions import is_imported, mentions
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import STARTS, WRAPS, Call, among, given, is_open, job, kinds
from trainprobe.lint.values import UNKNOWN

ID = "missing-sampler"
CAUSE = "multi-rank-mismatch"
WHY = "Every rank goes over all rows: an epoch is as many epochs as there are ranks, ranks see the same rows, and scaling out brings nothing."
FIX = Fix("Give the loader sampler=DistributedSampler(dataset) instead of shuffle=True, and call sampler.set_epoch(epoch) in each epoch.")
PLAIN = ("torch.utils.data.RandomSampler()", "torch.utils.data.sampler.RandomSampler()", "torch.utils.data.WeightedRandomSampler()")
# These bring a sampler of their own, or the job cuts the data itself.
ELSEWHERE = re.compile(r".*(DistributedSampler|BatchSampler)|split_dataset_by_node|Accelerator|Lightning(Data)?Module|shard")
PACKAGES = ("accelerate", "deepspeed")


def find(program: Program) -> Iterator[Finding]:
    for call in loaders(program):
        if not _shuffles(program, call) or not _is_wrapped(program, call.module):
            continue
        cls = dataset_of(program, call)
        iterates = cls is not None and any(kind.endswith(".IterableDataset") for kind in kinds(program, f"{cls.module.name}.{cls.qualname}"))
        if iterates or flow.guards(program, call.module, call.node) or _is_elsewhere(program, call.module):
            continue
        says = "This DataLoader shuffles without a DistributedSampler, in a job that trains one model on several ranks."
        yield program.finding(ID, CAUSE, call.module, call.node, says=says, why=WHY, confidence=0.75, fix=FIX)


def _shuffles(program: Program, call: Call) -> bool:
    """Whether it certainly draws its rows at random, without any other sampler."""
    if is_open(program, call.module, call.node) or given(program, call.module, call.node, "batch_sampler", 4) is not None:
        return False
    sampler = given(program, call.module, call.node, "sampler", 3)
    if sampler is not None:
        if program.dotted(sampler.module, sampler.node) in PLAIN:
            return True
        if program.value(sampler.module, sampler.node) is not None:
            return False
    shuffle = given(program, call.module, call.node, "shuffle", 2)
    if shuffle is None:
        return False
    value = program.value(shuffle.module, shuffle.node)
    return value is True or (value is UNKNOWN and sampler is not None and isinstance(shuffle.node, ast.Compare))


def _is_wrapped(program: Program, module: Module) -> bool:
    return bool(among(program, module, *WRAPS)) and bool(among(program, module, *STARTS))


def _is_elsewhere(program: Program, module: Module) -> bool:
    modules = job(program, module)
    return is_imported(program, modules, *PACKAGES) or any(ELSEWHERE.fullmatch(name) for one in modules for name in mentions(program, one).names)


RULE = Rule(ID, CAUSE, "A loader without DistributedSampler", WHY, 0.75, find)
