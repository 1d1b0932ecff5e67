"""A DistributedSampler whose set_epoch nobody calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint.calls import Call, callers, calls_ending_in
from trainprobe.lint.conditions import is_turned_off
from trainprobe.lint.expressions import origin, resolved_argument
from trainprobe.lint.jobs import job_modules
from trainprobe.lint.loaders import LOADER
from trainprobe.lint.mentions import is_run_by, mentions_pattern
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module, last_name
from trainprobe.lint.program import Program, remembered
from trainprobe.lint.values import UNKNOWN

RULE = Rule(
    id="missing-set-epoch",
    cause="multi-rank-mismatch",
    title="set_epoch is not called",
    why=(
        "DistributedSampler shuffles by seed + epoch. Without set_epoch every epoch uses the same"
        " order."
    ),
    fix=(
        "Call sampler.set_epoch(epoch) at the start of each epoch, before the loader is iterated."
    ),
    confidence=0.75,
)


EVALUATION = re.compile(
    r"(^|[\W_])(eval|evaluation|val|valid|validation|test|dev)(set|data)?($|[\W_])", re.IGNORECASE
)
SET = re.compile(r"(^|_)set_(\w+_)?epoch(_|$)")
EPOCH_CALL = re.compile(r"(^|_)(train|run|one)\w*_epoch$|^epoch$")
EPOCH = re.compile(r"\b(n_|num_|max_|cur_|i_)?(ep|epochs?|epoch_\w+)\b", re.IGNORECASE)


def find(program: Program) -> Iterator[Finding]:
    for call in calls_ending_in(program, "DistributedSampler"):
        if call.name != "torch.utils.data.DistributedSampler":
            continue
        if not _shuffles(program, call):
            continue
        if _is_for_evaluation(call) or _is_of_evaluation(program, call):
            continue
        if _is_never_made(program, call):
            continue
        modules = job_modules(program, call.module)
        loops = [module for module in modules if _epochs(program, module) is not None]
        if not loops or _has_own_order(program, call):
            continue
        # a loop elsewhere got the loader by a way that may lead through any module
        near = modules if call.module in loops else list(program.modules.values())
        if not mentions_pattern(program, near, SET) and not is_run_by(
            program, modules, "accelerate", "lightning"
        ):
            message = (
                "Nothing calls set_epoch on this DistributedSampler, although the job trains for"
                " several epochs."
            )
            yield RULE.finding(call.module, call.node, message)


def _shuffles(program: Program, call: Call) -> bool:
    """Whether it draws rows at random: by its default, as told, or as the default of a parameter
    says that nobody is seen to give.
    """
    place = resolved_argument(program, call, "shuffle", 3)
    if place is None:
        return not any(keyword.arg is None for keyword in call.node.keywords)
    value = program.value(*place)
    return (program.value(*origin(program, *place)) if value is UNKNOWN else value) is True


def _is_never_made(program: Program, call: Call) -> bool:
    """Whether a parameter asks for the sampler, and no caller of the function does."""
    holder = call.module.function_of(call.node)
    sites = callers(program, holder) if holder is not None else []
    return (
        holder is not None
        and all(is_turned_off(program, holder, call.node, site) for site in sites)
        and bool(sites)
    )


def _is_for_evaluation(call: Call) -> bool:
    """Whether data or name say evaluation, where order does not matter."""
    statement = call.module.statement_of(call.node)
    argument = [call.node.args[0]] if call.node.args else []
    if isinstance(statement, ast.Assign) and statement.value is call.node:
        argument.append(statement.targets[0])
    return any(EVALUATION.search(call.module.source_of(item)) for item in argument)


def _is_of_evaluation(program: Program, call: Call) -> bool:
    """Whether the loader that is given this sampler says evaluation: `batch_size=eval_batch`."""
    module, statement = call.module, call.module.statement_of(call.node)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    name, scope = statement.targets[0].id, module.scope_of(call.node)
    for loader in module.of(ast.Call):
        if module.scope_of(loader) is not scope or program.dotted(module, loader.func) != LOADER:
            continue
        given = [*loader.args, *(keyword.value for keyword in loader.keywords)]
        if any(isinstance(each, ast.Name) and each.id == name for each in given):
            return any(EVALUATION.search(module.source_of(each)) for each in given)
    return False


def _has_own_order(program: Program, call: Call) -> bool:
    """Whether the project's class draws its rows itself, whatever `set_epoch` says."""
    cls = program.class_named(program.dotted(call.module, call.node.func))
    return cls is not None and program.names.method(cls, "__iter__") is not None


def _runs_epoch(program: Program, module: Module, loop: ast.For | ast.While) -> bool:
    """Whether each turn calls the project's function of an epoch: `while True: train_epoch()`."""
    return any(
        EPOCH_CALL.search(last_name(node.func)) is not None
        and program.called(module, node) is not None
        for statement in loop.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
    )


@remembered
def _epochs(program: Program, module: Module) -> ast.AST | None:
    """A loop over epochs: its head says so, or it holds a loop over a loader."""
    loops: list[ast.For | ast.While] = [*module.of(ast.For), *module.of(ast.While)]
    for loop in loops:
        if isinstance(loop, ast.For) and program.value(module, loop.iter) is not UNKNOWN:
            continue
        head = (
            f"{module.source_of(loop.target)} {module.source_of(loop.iter)}"
            if isinstance(loop, ast.For)
            else module.source_of(loop.test)
        )
        if EPOCH.search(head) or _runs_epoch(program, module, loop):
            return loop
        if isinstance(loop, ast.For) and any(
            isinstance(inner, ast.For)
            and inner is not loop
            and program.dotted(module, inner.iter) == f"{LOADER}()"
            for inner in ast.walk(loop)
        ):
            return loop
    return None
