"""Data cut by rank into shards that need not be equally long."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint import ranks
from trainprobe.lint.mentions import NAMED
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import WRAPS, among, is_kind, job, origin

ID = "uneven-shards"
CAUSE = "uneven-inputs"
WHY = (
    "Where the rows do not divide by the number of ranks, some ranks have one step more than others, and wait in its gradient exchange for ranks that are done."
)
FIX = Fix("Cut the data to a multiple of the number of ranks first (drop the rest or repeat some rows), use DistributedSampler, or train under Join.")
JOINS = re.compile(r"torch\.distributed\.algorithms\.(\w+\.)*Join|horovod\.(\w+\.)*join")
WORLD = {"torch.distributed.get_world_size()"}
WORDS = {"world_size", "world", "num_replicas", "worldsize", "n_ranks", "num_ranks"}


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        if "rank" not in module.text.lower():
            continue
        for node in _cuts(program, module):
            if _is_evened(program, module, node) or not among(program, module, *WRAPS):
                continue
            says = f"{module.source_of(node)} gives ranks shards that may differ by one in length."
            yield program.finding(ID, CAUSE, module, node, says=says, why=WHY, confidence=0.6, fix=FIX)


def _cuts(program: Program, module: Module) -> Iterator[ast.expr]:
    for part in module.of(ast.Slice):
        if part.upper is None and part.lower is not None and part.step is not None and _is_pair(program, module, part.lower, part.step):
            held = module.parents[part]
            if isinstance(held, ast.Subscript):
                yield held
    for call in module.of(ast.Call):
        called = program.dotted(module, call.func)
        if (called == "range" and len(call.args) == 3 and _is_pair(program, module, call.args[0], call.args[2])) or (
            called == "itertools.islice" and len(call.args) == 4 and _is_pair(program, module, call.args[1], call.args[3])
        ):
            yield call
    for test in module.of(ast.Compare):
        if len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.NotEq):
            for one, other in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
                pair = isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod) and _is_pair(program, module, other, one.right)
                if pair and any(_goes_over_rows(module, up) for up in module.ancestors(test)):
                    yield test


def _goes_over_rows(module: Module, up: ast.AST) -> bool:
    """A loop, but not one that deals parameters out to ranks."""
    heads = [up.iter] if isinstance(up, ast.For) else [one.iter for one in up.generators] if isinstance(up, ast.ListComp | ast.GeneratorExp) else []
    return bool(heads) and not any("param" in module.source_of(one) for one in heads)


def _is_pair(program: Program, module: Module, rank: ast.expr, world: ast.expr) -> bool:
    return ranks.kind_of(program, module, rank) == "rank" and _is_world(program, module, world)


def _is_world(program: Program, module: Module, node: ast.expr) -> bool:
    behind = origin(program, module, node)
    if program.dotted(behind.module, behind.node) in WORLD or "WORLD_SIZE" in behind.module.source_of(behind.node):
        return True
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.lower() in WORDS


def _is_evened(program: Program, module: Module, node: ast.expr) -> bool:
    """Whether something here or in the job evens the lengths out."""
    function = module.function_of(node)
    if function is not None and function.cls is not None and is_kind(program, f"{module.name}.{function.cls.qualname}", "torch.utils.data.DistributedSampler"):
        return True  # its num_samples and total_size are even
    around: ast.AST = function.node if function is not None else module.tree
    for one in ast.walk(around):
        divides = isinstance(one, ast.BinOp) and isinstance(one.op, ast.FloorDiv | ast.Mod | ast.Mult) and _is_world(program, module, one.right)
        if divides and not any(up is node for up in (one, *module.ancestors(one))):
            return True
    words = [getattr(one, name, None) for one in ast.walk(around) for name in NAMED]
    if any(isinstance(word, str) and ("padd" in word or word in {"pad", "drop_last", "total_size"}) for word in words):
        return True
    return any(_joins(program, one) for one in job(program, module))


def _joins(program: Program, module: Module) -> bool:
    """Whether ranks that are done wait for the others: torch's Join, `with model.join():`, horovod's join."""
    held = [item.context_expr for block in module.of(ast.With) for item in block.items]
    waits = any(isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "join" for one in held)
    return waits or any(JOINS.fullmatch(program.dotted(module, call.func)) for call in module.of(ast.Call))


RULE = Rule(ID, CAUSE, "Shards of unequal length", WHY, 0.6, find)
