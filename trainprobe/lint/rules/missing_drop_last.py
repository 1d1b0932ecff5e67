"""A smaller last batch, where something needs all batches to be of one size."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from trainprobe.lint import calls, ranks
from trainprobe.lint.calls import Call, calls_to
from trainprobe.lint.expressions import Expression, argument_value, resolved_argument
from trainprobe.lint.jobs import calls_in_job, job_modules
from trainprobe.lint.loaders import LOADER, loaders_in, makes_own_batches
from trainprobe.lint.mentions import is_named
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Function, Module
from trainprobe.lint.program import Program

RULE = Rule(
    id="missing-drop-last",
    cause="collective-shape-mismatch",
    title="A smaller last batch",
    why=(
        "The last batch of an epoch holds only the remaining rows. Code written for full batches"
        " fails on it: 'shape is invalid', or sizes that do not match."
    ),
    fix=(
        "Pass drop_last=True to the training DataLoader, or take the size from the batch"
        " (len(batch), x.shape[0])."
    ),
    confidence=0.6,
    also=("user-exception",),
)


GATHERED = (
    "The ranks' parts may differ in length, so their last batches differ in size. all_gather needs"
    " the same shape on all ranks; otherwise it hangs or mixes data."
)
STAGED = (
    "Pipeline stages exchange tensors of the shape that they were built with. A smaller last batch"
    " fails, or leaves the other stages waiting."
)
GRAPHED = (
    "A CUDA graph replays on the tensors that it was captured with: a smaller last batch does not"
    " fit them, or leaves rows of the previous batch in them."
)
GRAPHS = (
    "torch.cuda.graph",
    "torch.cuda.CUDAGraph",
    "torch.cuda.make_graphed_callables",
    "torch.cuda.graphs.graph",
)
PIPELINE = re.compile(
    r"torch\.distributed\.pipelin\w+\.(\w+\.)*(PipelineStage|Schedule\w+|pipeline)"
)
GATHERS = set(
    """
    torch.distributed.all_gather torch.distributed.all_gather_into_tensor
    torch.distributed.nn.all_gather torch.distributed.nn.functional.all_gather
    """.split()
)
FIXED = {"view", "reshape", "arange", "eye", "expand"}
REDUCES = set(
    """
    mean sum item norm max min backward size tensor len float int cross_entropy mse_loss loss
    criterion
    """.split()
)


class Pass(NamedTuple):
    """A loop over a loader in which a model is trained, with the calls that it comes to."""

    loader: Call
    module: Module
    loop: ast.For
    reached: list[Call]


def find(program: Program) -> Iterator[Finding]:
    reported: set[ast.AST] = set()
    known = {call.node: call for call in calls_to(program, LOADER)}
    for module in program.examined if known else ():
        for loop in module.of(ast.For):
            for node in loaders_in(program, module, loop.iter):
                if (
                    node in reported
                    or node not in known
                    or not _may_be_uneven(program, known[node])
                ):
                    continue
                turn = Pass(known[node], module, loop, _reached(program, module, loop))
                if not any(_last(call.node) in {"backward", "step"} for call in turn.reached):
                    continue
                for cause, message, why in _needs(program, turn):
                    reported.add(node)
                    yield RULE.finding(turn.loader.module, node, message, cause=cause, why=why)
                    break


def _may_be_uneven(program: Program, call: Call) -> bool:
    if not makes_own_batches(program, call):
        return False
    size = argument_value(program, call, "batch_size", 1)
    if size is None or size == 1:
        return False
    return argument_value(program, call, "drop_last", 8, default=False) is False


def _reached(program: Program, module: Module, loop: ast.For) -> list[Call]:
    """The calls that a loop reaches; a call of a project's module is its `forward`."""
    found = [
        Call(module, item, "")
        for statement in loop.body
        for item in ast.walk(statement)
        if isinstance(item, ast.Call)
    ]
    functions: dict[Function, None] = {}
    for _module, node, _name in list(found):
        function = program.called(module, node)
        if function is None:
            cls = program.class_named(program.dotted(module, node.func).removesuffix("()"))
            function = program.names.method(cls, "forward") if cls is not None else None
        if function is not None:
            functions.update(dict.fromkeys(calls.reaches(program, function)))
    return found + [Call(item.module, node, item.name) for item in functions for node in item.calls]


def _needs(program: Program, turn: Pass) -> Iterator[tuple[str, str, str]]:
    where = f"line {turn.loop.lineno}"
    for module, node, _name in turn.reached:
        if (
            _last(node) in FIXED
            and node.args
            and _is_size(program, turn, Expression(module, node.args[0]))
        ):
            message = (
                f"{module.source_of(node)} in line {node.lineno} assumes a full batch, and the last"
                f" batch of this loader ({where}) may be smaller."
            )
            yield "user-exception", message, RULE.why
    if calls_in_job(program, turn.module, *GRAPHS) and any(
        _last(node) == "copy_" for _module, node, _name in turn.reached
    ):
        yield (
            "user-exception",
            (
                f"The loop in {where} copies each batch into the tensors of a CUDA graph, and the"
                " last batch of this loader may be smaller."
            ),
            GRAPHED,
        )
    staged = any(
        PIPELINE.fullmatch(program.dotted(item, call.func))
        for item in job_modules(program, turn.module)
        for call in item.of(ast.Call)
    )
    if staged and any(
        PIPELINE.match(program.dotted(module, node.func))
        for module, node, _name in turn.reached
        if _last(node) == "step"
    ):
        yield (
            RULE.cause,
            (
                f"The loop in {where} feeds each batch to a pipeline, and the last batch of this"
                " loader may be smaller."
            ),
            STAGED,
        )
    gather = _gathered(program, turn) if _is_cut_by_rank(program, turn) else None
    if gather is not None:
        yield (
            RULE.cause,
            (
                f"Line {gather.node.lineno} gathers a result per batch of the loop in {where}, and"
                " the last batches may differ in size between ranks."
            ),
            GATHERED,
        )


def _last(node: ast.Call) -> str:
    return (
        node.func.attr
        if isinstance(node.func, ast.Attribute)
        else node.func.id
        if isinstance(node.func, ast.Name)
        else ""
    )


def _is_size(program: Program, turn: Pass, place: Expression) -> bool:
    """Whether an expression is the loader's batch_size, by name; equal numbers may be chance."""
    size = resolved_argument(program, turn.loader, "batch_size", 1)
    words = (
        {
            item.attr if isinstance(item, ast.Attribute) else item.id
            for item in (place.node, size.node)
            if isinstance(item, ast.Attribute | ast.Name)
        }
        if size
        else set()
    )
    both = (
        size is not None
        and isinstance(place.node, ast.Attribute | ast.Name)
        and isinstance(size.node, ast.Attribute | ast.Name)
    )
    return both and len(words) == 1 and not _is_taken_from_batch(program, place)


def _is_taken_from_batch(program: Program, place: Expression) -> bool:
    """Whether the name holds a size read from a tensor: `batch_size = x.shape[0]`."""
    if not isinstance(place.node, ast.Name):
        return False
    return any(
        binding.kind in {"unpack", "other"}
        or (
            binding.kind == "value"
            and binding.value is not None
            and any(isinstance(part, ast.Subscript | ast.Call) for part in ast.walk(binding.value))
            and not _is_option(binding.value)
        )
        for binding in program.names.bindings(place.module, place.node)
        if binding.kind != "param"
    ) or any(
        binding.kind == "param" for binding in program.names.bindings(place.module, place.node)
    )


def _is_option(node: ast.expr) -> bool:
    """`int(os.environ[...])`, `config["batch_size"]`."""
    return any(
        isinstance(item, ast.Constant) and isinstance(item.value, str) for item in ast.walk(node)
    )


def _is_cut_by_rank(program: Program, turn: Pass) -> bool:
    """Whether the job cuts its rows by rank itself, so that the parts may differ in length."""
    modules = job_modules(program, turn.module)
    if is_named(program, modules, "DistributedSampler", "Accelerator", "prepare"):
        return False
    for module in modules:
        for cut in module.of(ast.Slice):
            if any(
                part is not None and ranks.kind_of(program, module, part) in {"rank", "derived"}
                for part in (cut.lower, cut.upper)
            ):
                return True
        for call in module.of(ast.Call):
            if _last(call) in {"shard", "islice", "split_dataset_by_node"} and any(
                ranks.kind_of(program, module, part) == "rank"
                for part in (*call.args, *(keyword.value for keyword in call.keywords))
            ):
                return True
    return False


def _gathered(program: Program, turn: Pass) -> Call | None:
    """The first gather of tensors that have a row for each row of the batch."""
    grown = {item.id for item in ast.walk(turn.loop.target) if isinstance(item, ast.Name)}
    for statement in (item for part in turn.loop.body for item in ast.walk(part)):
        if isinstance(statement, ast.Assign) and _has_rows(statement.value, grown):
            grown |= {
                item.id
                for target in statement.targets
                for item in ast.walk(target)
                if isinstance(item, ast.Name)
            }
    for module, node, name in turn.reached:
        if program.dotted(module, node.func) not in GATHERS:
            continue
        if not name:
            if any(_has_rows(argument, grown) for argument in node.args):
                return Call(module, node, name)
            continue
        holder = module.function_of(node)
        given_here = {
            item.id for part in node.args for item in ast.walk(part) if isinstance(item, ast.Name)
        }
        if (
            holder is not None
            and given_here.intersection(holder.parameters)
            and any(
                program.called(turn.module, call) is holder
                and any(_has_rows(argument, grown) for argument in call.args)
                for _module, call, own in turn.reached
                if not own
            )
        ):
            return Call(module, node, name)
    return None


def _has_rows(node: ast.expr, grown: set[str]) -> bool:
    if isinstance(node, ast.Call) and (_last(node) in REDUCES or _last(node).endswith("_loss")):
        return False
    if isinstance(node, ast.Name):
        return node.id in grown
    return any(
        isinstance(item, ast.expr) and _has_rows(item, grown) for item in ast.iter_child_nodes(node)
    )
