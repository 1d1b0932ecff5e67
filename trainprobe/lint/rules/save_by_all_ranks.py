"""`torch.save` by all ranks to one path."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint.calls import (
    Call,
    callers,
    calls_ending_in,
    calls_to,
    is_replaced,
    reaches,
)
from trainprobe.lint.every_rank import (
    STARTS,
    TRAINER,
    called_by_all,
    is_guarded,
    is_of_trainer,
    is_one_path,
)
from trainprobe.lint.expressions import Expression, origin, resolved_argument
from trainprobe.lint.jobs import calls_in_job, job_modules
from trainprobe.lint.mentions import is_named
from trainprobe.lint.model import Edit, Finding, Rule
from trainprobe.lint.modules import Function, Module, last_name, method_called, receiver_of
from trainprobe.lint.order import exclusive
from trainprobe.lint.program import Program
from trainprobe.lint.reached import reached_by_call
from trainprobe.lint.rewrites import guarded, name_of
from trainprobe.lint.values import argument
from trainprobe.lint.wrappers import wrapped

RULE = Rule(
    id="save-by-all-ranks",
    cause="checkpoint-corrupt",
    title="All ranks save to one path",
    why=(
        "All ranks write the same file at the same time. The result may be truncated or mixed,"
        " which shows only when it is loaded."
    ),
    fix=(
        "Save under `if dist.get_rank() == 0:` with a barrier for all ranks afterwards, or give"
        " each rank its own path."
    ),
    confidence=0.7,
)


PRETRAINED = (
    "Save on the main rank only, or pass is_main_process= of the Accelerator, with a barrier for"
    " all ranks afterwards."
)
MODEL = re.compile(r"(^|_)(model|net|unet|transformer|controlnet|vae|encoder|policy)($|_)")
UNWRAPS = {"unwrap_model", "extract_model_from_parallel"}
RANK_VARIABLES = ("LOCAL_RANK", "RANK", "SLURM_PROCID")
FOLDERS = {"output_dir", "out_dir", "save_dir", "output_path", "save_path", "save_directory"}
STEPS = {"backward", "manual_backward", "training_step", "train_step", "fit", "train"}
"""Methods by which a model is trained, or made ready for that."""
EVALUATES = {"eval", "no_grad", "inference_mode", "load_state_dict", "from_pretrained", "trace"}
MOST_CALLERS = 60
HINT = 0.45
"""The confidence where nothing shows that several ranks come."""


SCRIPTED = (
    *("torch.jit.script", "torch.jit.trace", "torch.jit.freeze"),
    "torch.jit.optimize_for_inference",
)
"""What makes a module with a `save` of its own."""


def find(program: Program) -> Iterator[Finding]:
    for call, path in _writes(program):
        function = call.module.function_of(call.node)
        of_trainer = function is not None and is_of_trainer(program, function)
        if path is None or not (of_trainer or calls_in_job(program, call.module, *STARTS)):
            continue
        if is_guarded(program, call.module, call.node):
            continue
        if not is_one_path(program, path, 0, given_alike=of_trainer):
            continue
        come = called_by_all(program, call.module, call.node)
        message = f"Every rank saves to {path.module.source_of(path.node)}{come}."
        replaced = function is not None and is_replaced(program, function)
        unsure = replaced or (not of_trainer and _only_converts(program, call))
        sure = HINT if unsure else RULE.confidence
        yield RULE.finding(
            call.module, call.node, message, confidence=sure, edits=_edits(program, call)
        )
    for call in calls_ending_in(program, "save_pretrained"):
        path = resolved_argument(program, call, "save_directory", 0)
        if (
            path is None
            or not _is_model(program, call)
            or argument(call.node, "is_main_process") is not None
            # accelerator.save and xm.save write on the main rank only
            or argument(call.node, "save_function") is not None
            or not _has_ranks(program, call.module)
        ):
            continue
        if not is_guarded(program, call.module, call.node) and (
            _is_option(program, path) or is_one_path(program, path, 0)
        ):
            come = called_by_all(program, call.module, call.node)
            message = f"Every rank saves the model to {path.module.source_of(path.node)}{come}."
            sure = HINT if _only_converts(program, call) else 0.6
            yield RULE.finding(call.module, call.node, message, confidence=sure, fix=PRETRAINED)


def _only_converts(program: Program, call: Call) -> bool:
    """Whether what comes to a save loads or evaluates a model and trains none, there or in what it
    calls: what converts weights or draws samples is mostly run as one process.
    """
    ways: list[tuple[Module, ast.AST]] = [(call.module, call.node)]
    calls: dict[ast.Call, None] = {}
    visited: set[Function] = set()
    while ways and len(visited) < MOST_CALLERS:
        module, node = ways.pop()
        holder = module.function_of(node)
        if holder is not None:
            if holder in visited:
                continue
            visited.add(holder)
            ways += [(site.module, site.node) for site in callers(program, holder)]
        beside = [
            each
            for each in (holder.calls if holder is not None else module.top_calls)
            # not the way to the save, nor another command of the same program
            if each is not node and not exclusive(module, node, each)
        ]
        run = [ran for each in beside if (ran := program.called(module, each)) is not None]
        calls.update(dict.fromkeys(beside))
        for item in reaches(program, *run):
            calls.update(dict.fromkeys(item.calls))
    names = {last_name(each.func) for each in calls}
    return bool(names & EVALUATES) and not names & STEPS


def _writes(program: Program) -> Iterator[tuple[Call, Expression | None]]:
    """What writes one file, with its path: torch.save, scripted modules that save themselves."""
    for call in calls_to(program, "torch.save", "torch.jit.save"):
        yield call, resolved_argument(program, call, "f", 1)
    for call in calls_to(program, "safetensors.torch.save_file"):
        yield call, resolved_argument(program, call, "filename", 1)
    for call in calls_ending_in(program, "save_to_disk"):  # a method of datasets' tables alone
        if program.called(call.module, call.node) is None:
            yield call, resolved_argument(program, call, "dataset_path", 0)
    for call in calls_ending_in(program, "save"):
        receiver = receiver_of(call.node, "save")
        if receiver is None:
            continue
        made = origin(program, call.module, receiver)
        if (
            isinstance(made.node, ast.Call)
            and program.dotted(made.module, made.node.func) in SCRIPTED
        ):
            yield call, resolved_argument(program, call, "f", 0)


def _is_model(program: Program, call: Call) -> bool:
    """Whether weights are saved, by a library's own method; other things are small."""
    receiver = receiver_of(call.node, "save_pretrained")
    unwrapped = isinstance(receiver, ast.Call) and last_name(receiver.func) in UNWRAPS
    return (
        receiver is not None
        and (program.called(call.module, call.node) is None or unwrapped)
        and (unwrapped or MODEL.search(last_name(receiver)) is not None)
        and not wrapped(program, call.module, receiver) & {"fsdp", "fsdp2", "deepspeed"}
    )


def _has_ranks(program: Program, module: Module) -> bool:
    """Whether the job starts ranks, or lets transformers' Trainer do so and asks for the rank."""
    if calls_in_job(program, module, *STARTS):
        return True
    modules = job_modules(program, module)
    return is_named(program, modules, *RANK_VARIABLES) and any(
        TRAINER.fullmatch(program.dotted(each, node.func))
        for each in modules
        for node in each.of(ast.Call)
    )


def _is_option(program: Program, path: Expression) -> bool:
    """Whether it is the user's folder, which is the same for all: `args.output_dir`."""
    behind = origin(program, path.module, path.node)
    match behind.node:
        case ast.Attribute(value=ast.Name(), attr=name):
            return name in FOLDERS
    return False


def _edits(program: Program, call: Call) -> tuple[Edit, ...] | None:
    """Put the save under a test of the rank, where nothing in it needs the other ranks."""
    module, statement = call.module, call.module.parents.get(call.node)
    inner = [
        node for node in ast.walk(call.node) if isinstance(node, ast.Call) and node is not call.node
    ]
    dist = name_of(module, "torch.distributed", call.node.lineno)
    if (
        not dist
        or not isinstance(statement, ast.Expr)
        or any(reached_by_call(program, module, item) for item in inner)
    ):
        return None
    if any(
        method_called(item) in {"state_dict", "full_tensor"}
        and wrapped(program, module, item.func.value) & {"fsdp", "fsdp2", "deepspeed"}  # type: ignore[attr-defined]
        for item in inner
    ):
        return None
    return guarded(module, statement, f"not {dist}.is_initialized() or {dist}.get_rank() == 0")
