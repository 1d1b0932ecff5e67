"""A trainer that is told to stop, or to evaluate, on the main rank only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import flow
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module, last_name
from trainprobe.lint.program import Program
from trainprobe.lint.ranks import EXCHANGES, may_exchange

RULE = Rule(
    id="stop-on-one-rank",
    cause="rank-conditional-collective",
    title="A trainer told to stop on one rank only",
    why=(
        "Each process has a trainer of its own and asks its own flag. The rank that is told stops,"
        " and the others wait for it in the next step's collectives until the timeout."
    ),
    fix=(
        "Let the main rank decide and tell the others, as trainer.strategy.broadcast(stop) or"
        " dist.broadcast_object_list([stop]), and set the flag on all ranks."
    ),
    confidence=0.8,
)

# Lightning's Trainer; transformers' TrainerControl
FLAGS = {"should_stop", "should_training_stop", "should_epoch_stop", "should_evaluate"}
HOLDERS = {"trainer", "_trainer", "control"}


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        for statement in module.of(ast.Assign):
            match statement:
                case ast.Assign(
                    targets=[ast.Attribute(value=holder, attr=flag)], value=ast.Constant(value=True)
                ) if flag in FLAGS and last_name(holder) in HOLDERS:
                    guard = next(
                        (
                            each
                            for each in flow.guards(program, module, statement)
                            if each.test.polarity != "some"
                        ),
                        None,
                    )
                    if guard is None or _is_told(module, statement, flag):
                        continue
                    where = f"`{guard.test.says}` (line {guard.line})"
                    name = module.source_of(statement.targets[0])
                    message = f"{name} is set only where {where} holds; the other ranks go on."
                    yield RULE.finding(module, statement, message)


def _is_told(module: Module, statement: ast.Assign, flag: str) -> bool:
    """Whether its function exchanges the flag, or sets it from what an exchange gave."""
    function = module.function_of(statement)
    return function is None or any(
        may_exchange(call, flag)
        or (
            EXCHANGES.search(last_name(call.func))
            and flag in module.source_of(module.statement_of(call))
        )
        for call in function.calls
    )
