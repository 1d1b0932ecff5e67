"""Data cut by rank into shards that need not be equally long."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint import ranks
from trainprobe.lint.calls import is_subclass
from trainprobe.lint.expressions import Expression, origin
from trainprobe.lint.jobs import WRAPS, calls_in_job, job_modules
from trainprobe.lint.mentions import NAMED
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module, last_name, method_called, receiver_of
from trainprobe.lint.program import Program
from trainprobe.lint.values import argument

RULE = Rule(
    id="uneven-shards",
    cause="uneven-inputs",
    title="Shards of unequal length",
    why=(
        "Unless the number of ranks divides the number of rows, some ranks run one step more and"
        " wait in its gradient exchange for ranks that have finished."
    ),
    fix=(
        "Truncate or pad the data to a multiple of the number of ranks, use DistributedSampler, or"
        " train under Join."
    ),
    # whether ranks must have equally many rows is mostly decided elsewhere: docs/lint-precision.md
    confidence=0.45,
)


JOINS = re.compile(r"torch\.distributed\.algorithms\.(\w+\.)*Join|horovod\.(\w+\.)*join")
WORLD = {"torch.distributed.get_world_size()"}
WORDS = {"world_size", "world", "num_replicas", "worldsize", "n_ranks", "num_ranks"}

SAMPLER = "torch.utils.data.DistributedSampler"


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        if "rank" not in module.text.lower():
            continue
        for node in _cuts(program, module):
            if _is_evened(program, module, node) or not calls_in_job(program, module, *WRAPS):
                continue
            message = (
                f"{module.source_of(node)} gives ranks shards whose lengths may differ by one."
            )
            yield RULE.finding(module, node, message)


def _cuts(program: Program, module: Module) -> Iterator[ast.expr]:
    yield from _sliced(program, module)
    for call in module.of(ast.Call):
        called = program.dotted(module, call.func)
        if _cuts_by_name(program, module, call, called):
            yield call
        if (
            called == "range"
            and len(call.args) == 3
            and _is_pair(program, module, call.args[0], call.args[2])
        ) or (
            called == "itertools.islice"
            and len(call.args) == 4
            and _is_pair(program, module, call.args[1], call.args[3])
        ):
            yield call
    for test in module.of(ast.Compare):
        if len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.NotEq):
            for item, other in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
                match item:
                    case ast.BinOp(op=ast.Mod(), right=world):
                        if (
                            _is_pair(program, module, other, world)
                            and any(_goes_over_rows(module, up) for up in module.ancestors(test))
                            and not _has_other_branch(module, test)
                        ):
                            yield test


def _is_block(program: Program, module: Module, part: ast.Slice) -> bool:
    """`[rank * size : (rank + 1) * size]` of a size that was rounded up: the last part is short."""
    match part:
        case ast.Slice(lower=ast.expr() as lower, upper=ast.expr()):
            behind = origin(program, module, lower)
        case _:
            return False
    match behind.node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            pairs = ((left, right), (right, left))
        case _:
            return False
    return any(
        ranks.kind_of(program, behind.module, rank) == "rank"
        and _is_rounded_up(program, behind.module, size)
        for rank, size in pairs
    )


def _is_of_block(program: Program, module: Module, node: ast.expr) -> bool:
    """Whether the calculation with the number of ranks is that of the parts themselves."""
    match node:
        case ast.Subscript(slice=ast.Slice(step=None) as part):
            return _is_block(program, module, part)
    return False


def _is_rounded_up(program: Program, module: Module, node: ast.expr) -> bool:
    """`ceil(rows / world)`, `rows // world + 1`, `(rows + world - 1) // world`."""
    behind = origin(program, module, node)
    while isinstance(behind.node, ast.Call) and last_name(behind.node.func) in {"int", "ceil"}:
        inner = behind.node.args[0] if behind.node.args else None
        match inner:
            case ast.BinOp(op=ast.Div(), right=world) if last_name(behind.node.func) == "ceil":
                return _is_world(program, behind.module, world)
            case ast.Call():
                behind = Expression(behind.module, inner)
            case _:
                return False
    match behind.node:
        case ast.BinOp(
            left=ast.BinOp(op=ast.FloorDiv(), right=world),
            op=ast.Add(),
            right=ast.Constant(value=1),
        ):
            return _is_world(program, behind.module, world)
        case ast.BinOp(left=ast.BinOp(op=ast.Sub() | ast.Add()), op=ast.FloorDiv(), right=world):
            return _is_world(program, behind.module, world)
    return False


def _sliced(program: Program, module: Module) -> Iterator[ast.expr]:
    """Yield `rows[rank::world]` and `rows[rank * size : (rank + 1) * size]`."""
    for part in module.of(ast.Slice):
        strided = (
            part.upper is None
            and part.lower is not None
            and part.step is not None
            and _is_pair(program, module, part.lower, part.step)
        )
        parent = module.parents[part]
        if isinstance(parent, ast.Subscript) and (
            strided or (part.step is None and _is_block(program, module, part))
        ):
            yield parent


def _cuts_by_name(program: Program, module: Module, call: ast.Call, called: str) -> bool:
    """Whether a call of `datasets` cuts by rank: its parts differ by a row."""
    if called == "datasets.distributed.split_dataset_by_node":
        rank, world = argument(call, "rank", 1), argument(call, "world_size", 2)
    elif method_called(call) == "shard" and program.called(module, call) is None:
        world, rank = argument(call, "num_shards", 0), argument(call, "index", 1)
    else:
        return False
    return rank is not None and world is not None and _is_pair(program, module, rank, world)


def _has_other_branch(module: Module, test: ast.Compare) -> bool:
    """Whether the rows of other ranks are kept too, in another form."""
    around = next((up for up in module.ancestors(test) if isinstance(up, ast.stmt)), None)
    other = around.orelse if isinstance(around, ast.If) else []
    return any(not isinstance(each, ast.Continue | ast.Pass) for each in other)


def _goes_over_rows(module: Module, up: ast.AST) -> bool:
    """A loop, but not one that deals parameters out to ranks."""
    heads = (
        [up.iter]
        if isinstance(up, ast.For)
        else (
            [generator.iter for generator in up.generators]
            if isinstance(up, ast.ListComp | ast.GeneratorExp)
            else []
        )
    )
    return bool(heads) and not any("param" in module.source_of(head) for head in heads)


def _is_pair(program: Program, module: Module, rank: ast.expr, world: ast.expr) -> bool:
    return ranks.kind_of(program, module, rank) == "rank" and _is_world(program, module, world)


def _is_world(program: Program, module: Module, node: ast.expr) -> bool:
    behind = origin(program, module, node)
    if program.dotted(
        behind.module, behind.node
    ) in WORLD or "WORLD_SIZE" in behind.module.source_of(behind.node):
        return True
    return last_name(node).lower() in WORDS


def _is_evened(program: Program, module: Module, node: ast.expr) -> bool:
    """Whether something here or in the job evens the lengths out."""
    function = module.function_of(node)
    cls = function.cls if function is not None else None
    if cls is not None and is_subclass(program, cls.full_name, SAMPLER):
        return True  # its num_samples and total_size are even
    around: ast.AST = function.node if function is not None else module.tree
    for item in ast.walk(around) if not _is_of_block(program, module, node) else ():
        match item:
            case ast.BinOp(op=ast.FloorDiv() | ast.Mod() | ast.Mult(), right=world):
                inside = any(up is node for up in (item, *module.ancestors(item)))
                if not inside and _is_world(program, module, world):
                    return True
    names = [getattr(entry, name, None) for entry in ast.walk(around) for name in NAMED]
    if any(
        isinstance(name, str) and ("padd" in name or name in {"pad", "drop_last", "total_size"})
        for name in names
    ):
        return True
    return any(_joins(program, entry) for entry in job_modules(program, module))


def _joins(program: Program, module: Module) -> bool:
    """Whether finished ranks wait for the others: torch's Join, `model.join()`, horovod's join."""
    holder = [item.context_expr for block in module.of(ast.With) for item in block.items]
    return any(receiver_of(entry, "join") is not None for entry in holder) or any(
        JOINS.fullmatch(program.dotted(module, call.func)) for call in module.of(ast.Call)
    )
