"""A last batch that is smaller than the rest, where something needs all batches to be of one size."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from trainprobe.lint import calls, ranks
from trainprobe.lint.loaders import LOADER
from trainprobe.lint.mentions import is_named
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Function, Module
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import Call, Place, among, calls_of, given, is_open, job
from trainprobe.lint.worker_counts import loaders_in

ID = "missing-drop-last"
CAUSE = "collective-shape-mismatch"
FIX = Fix("Give the DataLoader of the training data drop_last=True, or take the size from the batch (len(batch), x.shape[0]).")
SHAPED = "The last batch of an epoch has the rows that are left. What was written for the size of the others fails there: 'shape is invalid', or sizes that do not match."
GATHERED = "The parts of the ranks need not divide alike, so their last batches differ in size. all_gather needs tensors of one shape on all ranks: it hangs or mixes data."
STAGED = "Stages of a pipeline exchange tensors of the shape that they were built with. A smaller last batch fails there, or leaves the other stages waiting."
GRAPHED = (
    "A CUDA graph replays on the tensors that it was captured with: a smaller last batch does not fit into them, or leaves rows of the batch before in them."
)
GRAPHS = ("torch.cuda.graph", "torch.cuda.CUDAGraph", "torch.cuda.make_graphed_callables", "torch.cuda.graphs.graph")
PIPELINE = re.compile(r"torch\.distributed\.pipelin\w+\.(\w+\.)*(PipelineStage|Schedule\w+|pipeline)")
GATHERS = {
    "torch.distributed.all_gather",
    "torch.distributed.all_gather_into_tensor",
    "torch.distributed.nn.all_gather",
    "torch.distributed.nn.functional.all_gather",
}
FIXED = {"view", "reshape", "arange", "eye", "expand"}
REDUCES = {"mean", "sum", "item", "norm", "max", "min", "backward", "size", "tensor", "len", "float", "int", "cross_entropy", "mse_loss", "loss", "criterion"}


class Pass(NamedTuple):
    """A loop over a loader in which a model is trained, with the calls that it comes to."""

    loader: Call
    module: Module
    loop: ast.For
    reached: list[Call]


def find(program: Program) -> Iterator[Finding]:
    told: set[ast.AST] = set()
    known = {call.node: call for call in calls_of(program, LOADER)}
    for module in program.examined if known else ():
        for loop in module.of(ast.For):
            for node in loaders_in(program, module, loop.iter):
                if node in told or node not in known or not _may_be_uneven(program, known[node]):
                    continue
                turn = Pass(known[node], module, loop, _reached(program, module, loop))
                if not any(_last(call.node) in {"backward", "step"} for call in turn.reached):
                    continue
                for cause, says, why in _needs(program, turn):
                    told.add(node)
                    yield program.finding(ID, cause, turn.loader.module, node, says=says, why=why, confidence=0.6, fix=FIX)
                    break


def _may_be_uneven(program: Program, call: Call) -> bool:
    if is_open(program, call.module, call.node) or given(program, call.module, call.node, "batch_sampler", 4) is not None:
        return False
    size, drops = given(program, call.module, call.node, "batch_size", 1), given(program, call.module, call.node, "drop_last", 8)
    number = program.value(size.module, size.node) if size is not None else None
    if number is None or number == 1:
        return False
    return drops is None or program.value(drops.module, drops.node) is False


def _reached(program: Program, module: Module, loop: ast.For) -> list[Call]:
    """The calls of a loop and of the project's functions that it comes to; a call of a module of the project is its `forward`."""
    found = [Call(module, one, "") for statement in loop.body for one in ast.walk(statement) if isinstance(one, ast.Call)]
    functions: dict[Function, None] = {}
    for _module, node, _name in list(found):
        function = program.called(module, node)
        if function is None:
            cls = program.class_named(program.dotted(module, node.func).removesuffix("()"))
            function = program.names.method(cls, "forward") if cls is not None else None
        if function is not None:
            functions.update(dict.fromkeys(calls.reaches(program, function)))
    return found + [Call(one.module, node, one.name) for one in functions for node in one.calls]


def _needs(program: Program, turn: Pass) -> Iterator[tuple[str, str, str]]:
    where = f"line {turn.loop.lineno}"
    for module, node, _name in turn.reached:
        if _last(node) in FIXED and node.args and _is_size(program, turn, Place(module, node.args[0])):
            says = f"{module.source_of(node)} in line {node.lineno} is written for a full batch, and the last one of this loader ({where}) may be smaller."
            yield "user-exception", says, SHAPED
    if among(program, turn.module, *GRAPHS) and any(_last(node) == "copy_" for _module, node, _name in turn.reached):
        yield (
            "user-exception",
            f"The loop in {where} copies each batch into the tensors of a CUDA graph, and the last one of this loader may be smaller.",
            GRAPHED,
        )
    staged = any(PIPELINE.fullmatch(program.dotted(one, call.func)) for one in job(program, turn.module) for call in one.of(ast.Call))
    if staged and any(PIPELINE.match(program.dotted(module, node.func)) for module, node, _name in turn.reached if _last(node) == "step"):
        yield CAUSE, f"The loop in {where} gives each batch to a pipeline, and the last one of this loader may be smaller.", STAGED
    gather = _gathered(program, turn) if _is_cut_by_rank(program, turn) else None
    if gather is not None:
        yield (
            CAUSE,
            f"Line {gather.node.lineno} gathers what the loop in {where} makes of each batch, and the last ones may differ from rank to rank.",
            GATHERED,
        )


def _last(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""


def _is_size(program: Program, turn: Pass, place: Place) -> bool:
    """Whether an expression is the loader's batch_size, by the name that both have; alike numbers may be chance."""
    size = given(program, turn.loader.module, turn.loader.node, "batch_size", 1)
    words = (
        {one.attr if isinstance(one, ast.Attribute) else one.id for one in (place.node, size.node) if isinstance(one, ast.Attribute | ast.Name)}
        if size
        else set()
    )
    both = size is not None and isinstance(place.node, ast.Attribute | ast.Name) and isinstance(size.node, ast.Attribute | ast.Name)
    return both and len(words) == 1 and not _is_taken_from_batch(program, place)


def _is_taken_from_batch(program: Program, place: Place) -> bool:
    """Whether the name is bound to a size that was read from a tensor: `batch_size = x.shape[0]`."""
    if not isinstance(place.node, ast.Name):
        return False
    return any(
        one.kind in {"unpack", "other"}
        or (one.kind == "value" and one.value is not None and isinstance(one.value, ast.Subscript | ast.Call) and not _is_option(one.value))
        for one in program.names.bindings(place.module, place.node)
        if one.kind != "param"
    ) or any(one.kind == "param" for one in program.names.bindings(place.module, place.node))


def _is_option(node: ast.expr) -> bool:
    """`int(os.environ[...])`, `config["batch_size"]`."""
    return any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in ast.walk(node))


def _is_cut_by_rank(program: Program, turn: Pass) -> bool:
    """Whether the job cuts its rows by rank itself, so that the parts may differ in length."""
    modules = job(program, turn.module)
    if is_named(program, modules, "DistributedSampler", "Accelerator", "prepare"):
        return False
    for module in modules:
        for cut in module.of(ast.Slice):
            if any(part is not None and ranks.kind_of(program, module, part) in {"rank", "derived"} for part in (cut.lower, cut.upper)):
                return True
        for call in module.of(ast.Call):
            if _last(call) in {"shard", "islice", "split_dataset_by_node"} and any(
                ranks.kind_of(program, module, part) == "rank" for part in (*call.args, *(word.value for word in call.keywords))
            ):
                return True
    return False


def _gathered(program: Program, turn: Pass) -> Call | None:
    """The first gather of tensors that have a row for each row of the batch."""
    grown = {one.id for one in ast.walk(turn.loop.target) if isinstance(one, ast.Name)}
    for statement in (one for part in turn.loop.body for one in ast.walk(part)):
        if isinstance(statement, ast.Assign) and _has_rows(statement.value, grown):
            grown |= {one.id for target in statement.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    for module, node, name in turn.reached:
        if program.dotted(module, node.func) not in GATHERS:
            continue
        if not name:
            if any(_has_rows(one, grown) for one in node.args):
                return Call(module, node, name)
            continue
        holder = module.function_of(node)
        given_here = {one.id for part in node.args for one in ast.walk(part) if isinstance(one, ast.Name)}
        if (
            holder is not None
            and given_here.intersection(holder.parameters)
            and any(
                program.called(turn.module, call) is holder and any(_has_rows(one, grown) for one in call.args)
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
    return any(isinstance(one, ast.expr) and _has_rows(one, grown) for one in ast.iter_child_nodes(node))


RULE = Rule(ID, CAUSE, "A smaller last batch", SHAPED, 0.6, find, also=("user-exception",))
