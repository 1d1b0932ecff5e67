"""Each rank makes only the group that it is a member of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import flow, ranks
from trainprobe.lint.calls import calls_to
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.values import argument

RULE = Rule(
    id="group-of-own-ranks",
    cause="rank-conditional-collective",
    title="Each rank makes only the group that it is in",
    why=(
        "torch.distributed.new_group is called by all ranks of the job, for every group and in the"
        " same order, also by those that are no members. Where ranks name different members they"
        " wait for each other, or pair groups that do not belong together."
    ),
    fix=(
        "Go through all groups on all ranks, as for members in groups: group ="
        " dist.new_group(members), and keep the one with your rank; or use"
        " dist.new_subgroups, init_device_mesh, or use_local_synchronization=True."
    ),
    confidence=0.8,
)

ITERATES = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.DictComp, ast.GeneratorExp)


def find(program: Program) -> Iterator[Finding]:
    for call in calls_to(program, "torch.distributed.new_group"):
        members = argument(call.node, "ranks", 0)
        local = program.values.keyword(
            call.module, call.node, "use_local_synchronization", default=False
        )
        if members is None or local is not False or flow.guards(program, call.module, call.node):
            continue
        if isinstance(members, ast.List) and len(members.elts) == 1:
            continue  # of itself alone, which meets with nobody
        if any(isinstance(up, ITERATES) for up in call.module.ancestors(call.node)):
            continue
        if _differs(program, call.module, members):
            message = (
                f"{call.module.source_of(members)} names other members on other ranks, and each"
                " rank makes this one group."
            )
            yield RULE.finding(call.module, call.node, message)


def _differs(program: Program, module: Module, node: ast.expr) -> bool:
    """Whether the members are calculated from the rank, here or where the name is bound."""
    parts = [node]
    if isinstance(node, ast.Name):
        parts = [
            binding.value
            for binding in program.names.bindings(module, node)
            if binding.kind == "value" and isinstance(binding.value, ast.expr)
        ]
    return any(
        ranks.kind_of(program, module, inner) in {"rank", "derived"}
        for part in parts
        for inner in ast.walk(part)
        if isinstance(inner, ast.Name | ast.Attribute | ast.BinOp | ast.Call)
    )
