"""`torch.save` by all ranks to one path."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint import flow, ranks
from trainprobe.lint.alone import is_alone
from trainprobe.lint.calls import (
    Call,
    callers,
    calls_ending_in,
    calls_to,
    class_and_bases,
    is_replaced,
    makers,
    reaches,
    versions,
)
from trainprobe.lint.conditions import is_turned_off
from trainprobe.lint.expressions import Expression, origin, resolved_argument
from trainprobe.lint.jobs import calls_in_job, job_modules
from trainprobe.lint.mentions import is_named
from trainprobe.lint.model import Edit, Finding, Rule
from trainprobe.lint.modules import Function, Module, last_name, method_called, receiver_of
from trainprobe.lint.order import Order, exclusive
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
EVERY_RANK = set(
    """
    save_model _save_checkpoint _save_optimizer_and_scheduler _save_rng_state training_step
    evaluate evaluation_loop compute_loss
    """.split()
)
"""Methods of transformers' Trainer that it calls on every rank, with the same folder."""
TRAINER = re.compile(r"(transformers|trl)\.([\w.]+\.)?\w*Trainer")
RANK_VARIABLES = ("LOCAL_RANK", "RANK", "SLURM_PROCID")
ENTRIES = (
    *("fire.Fire", "typer.run", "absl.app.run", "hydra.main", "click.command"),
    *("torch.multiprocessing.spawn", "accelerate.notebook_launcher"),
    "torch.distributed.elastic.multiprocessing.errors.record",
)
FOLDERS = {"output_dir", "out_dir", "save_dir", "output_path", "save_path", "save_directory"}
SOUNDS = re.compile(
    r"rank|master|is_main|main_process|should_save|primary|leader|chief|_zero|coordinator"
    r"|first_(worker|process|node)"
    r"|\bgpu(_id)?\s*==\s*0",
    re.IGNORECASE,
)
"""Conditions that name the rank that saves in words that cannot be followed to it."""
STEPS = {"backward", "manual_backward", "training_step", "train_step", "fit", "train"}
"""Methods by which a model is trained, or made ready for that."""
EVALUATES = {"eval", "no_grad", "inference_mode", "load_state_dict", "from_pretrained", "trace"}
MOST_CALLERS = 60
HINT = 0.45
"""The confidence where nothing shows that several ranks come."""
OWN = ("rank", "proc", "shard", "worker", "tmp", "temp", "gpu", "device")
"""Parts of names that differ between ranks: their own numbers, folders and GPUs."""
STARTS = ("torch.distributed.init_process_group", "accelerate.Accelerator")


SCRIPTED = (
    *("torch.jit.script", "torch.jit.trace", "torch.jit.freeze"),
    "torch.jit.optimize_for_inference",
)
"""What makes a module with a `save` of its own."""


def find(program: Program) -> Iterator[Finding]:
    for call, path in _writes(program):
        function = call.module.function_of(call.node)
        of_trainer = function is not None and _is_of_trainer(program, function)
        if path is None or not (of_trainer or calls_in_job(program, call.module, *STARTS)):
            continue
        if _is_guarded(program, call.module, call.node):
            continue
        if not _is_one_path(program, path, 0, given_alike=of_trainer):
            continue
        message = f"Every rank saves to {path.module.source_of(path.node)}."
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
        if not _is_guarded(program, call.module, call.node) and (
            _is_option(program, path) or _is_one_path(program, path, 0)
        ):
            message = f"Every rank saves the model to {path.module.source_of(path.node)}."
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


def _is_of_trainer(program: Program, function: Function) -> bool:
    """Whether it overrides what transformers' Trainer calls on every rank."""
    return (
        function.cls is not None
        and function.name in EVERY_RANK
        and any(map(TRAINER.fullmatch, class_and_bases(program, function.cls.full_name)))
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


def _is_apart(program: Program, module: Module, node: ast.AST) -> bool:
    """Whether it runs only when its file is run by itself, in a file that starts no job."""
    return module.is_of_script(node) and not _starts(program, module)


def _starts(program: Program, module: Module) -> bool:
    return any(call.module is module for call in calls_to(program, *STARTS))


def _is_start(program: Program, function: Function) -> bool:
    """Whether what nobody calls may be where ranks come: it starts them itself, or its module does,
    by its top level or for a class's methods.
    """
    if function.cls is not None:
        return _starts(program, function.module)
    reached = set(reaches(program, function))
    return any(
        holder in reached or (holder is None and call.module is function.module)
        for call in calls_to(program, *STARTS)
        for holder in (call.module.function_of(call.node),)
    )


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


def _is_guarded(  # noqa: PLR0911 - one return per reason
    program: Program, module: Module, node: ast.AST, within: tuple[Function, ...] = ()
) -> bool:
    """Whether only some ranks get here, or nothing is known of how this is reached."""
    if flow.guards(program, module, node) or any(
        isinstance(up, ast.If) and SOUNDS.search(module.source_of(up.test, 200))
        for up in module.ancestors(node)
    ):
        return True
    if (
        is_alone(program, module, node)
        or _is_apart(program, module, node)
        or _goes_first(module, node)
    ):
        return True
    function = module.function_of(node)
    if function is None:
        return not Order(program, _event_kind).top(module)
    if len(within) > 6:
        return False
    if _is_of_trainer(program, function):
        return False
    if _is_made_by_some(program, function):
        return True
    if function.cls is not None and function.name == "__getitem__":
        return True  # a file of each row, and ranks have rows of their own
    sites = [
        site
        for site in callers(program, function)
        if site.module.function_of(site.node) not in {function, *within}
    ]
    of_ranks = [site for site in sites if calls_in_job(program, site.module, *STARTS)]
    if sites and not of_ranks:
        return True
    if of_ranks and all(is_turned_off(program, function, node, site) for site in of_ranks):
        return True
    sites = of_ranks
    if not sites:
        return not (_is_start(program, function) or _is_entry(program, function))
    return all(_is_guarded(program, site.module, site.node, (*within, function)) for site in sites)


def _is_made_by_some(program: Program, function: Function) -> bool:
    """Whether only some ranks make an object with this method, or all of them make those with
    another version of it.
    """
    made = makers(program, function)
    of_ranks = [call for call in made if calls_in_job(program, call.module, *STARTS)]
    if not of_ranks:
        return bool(made) and bool(versions(program, function))
    return all(flow.guards(program, call.module, call.node) for call in of_ranks)


FIRST = re.compile(r"(zero|main|master|process|rank_?0)\w*_first|lock\w*\(", re.IGNORECASE)


def _goes_first(module: Module, node: ast.AST) -> bool:
    """Whether ranks take turns, as in `with zero_first(rank):` or under a lock, and find what the
    first of them left.
    """
    return any(
        FIRST.search(module.source_of(item.context_expr))
        for up in module.ancestors(node)
        if isinstance(up, ast.With)
        for item in up.items
    )


def _is_entry(program: Program, function: Function) -> bool:
    """Whether the command line, or a launcher of ranks, calls a function by what it is given."""
    module = function.module
    decorated = (
        decorator.func if isinstance(decorator, ast.Call) else decorator
        for decorator in function.node.decorator_list
    )
    return any(program.dotted(module, each) in ENTRIES for each in decorated) or any(
        call.node.args
        and program.function(program.dotted(call.module, call.node.args[0])) is function
        for call in calls_to(program, *ENTRIES)
    )


def _event_kind(program: Program, module: Module, call: ast.Call) -> str:
    return "start" if program.dotted(module, call.func) in STARTS else ""


def _is_one_path(
    program: Program, path: Expression, depth: int, *, given_alike: bool = False
) -> bool:
    """Whether a path is put together here, and from nothing that differs from rank to rank. With
    `given_alike`, callers give all ranks the same folder.
    """
    behind = origin(program, path.module, path.node)
    if isinstance(behind.node, ast.Name) and depth == 0:
        default = _default_path(program, behind.module, behind.node)
        if default is not None:
            return _is_one_path(program, Expression(behind.module, default), depth + 1)
    if depth > 4 or isinstance(behind.node, ast.Name | ast.Attribute | ast.Subscript):
        return False
    for node in ast.walk(behind.node):
        if isinstance(node, ast.expr) and (
            ranks.kind_of(program, behind.module, node) or _sounds_like_a_rank(node)
        ):
            return False
        if isinstance(node, ast.Call):
            called = program.dotted(behind.module, node.func)
            if called in {
                "io.BytesIO",
                "open",
                "tempfile.mkdtemp",
                "tempfile.NamedTemporaryFile",
                "tempfile.mkstemp",
                "os.getpid",
                "uuid.uuid4",
            } or not (called or _is_template(node)):
                return False
            if program.function(called) is not None:
                return False
        loaded = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        if (
            loaded
            and node is not behind.node
            and _may_differ(program, behind, node, given_alike=given_alike)  # type: ignore[arg-type]
        ):
            return False
    return True


def _may_differ(program: Program, path: Expression, node: ast.Name, *, given_alike: bool) -> bool:
    """Whether a name in a path holds what differs between ranks, or may do so."""
    inner = origin(program, path.module, node)
    if inner.node is not node and any(
        ranks.kind_of(program, inner.module, each)
        for each in ast.walk(inner.node)
        if isinstance(each, ast.expr)
    ):
        return True
    unknown = inner.node is node or isinstance(inner.node, ast.Subscript)
    holder = path.module.function_of(node)
    return not given_alike and unknown and _is_free_root(holder, node, path.node)


def _default_path(program: Program, module: Module, name: ast.Name) -> ast.expr | None:
    """The path that a function takes where its caller names none: `if path is None: path = …`."""
    match program.names.bindings(module, name):
        case [given, made] if given.kind == "param" and made.kind == "value":
            test = module.parents.get(made.node)
            asks = isinstance(test, ast.If) and ast.unparse(test.test) == f"{name.id} is None"
            return made.value if asks else None
    return None


def _is_template(call: ast.Call) -> bool:
    """`"{}/model.pt".format(…)`, and a text that joins others."""
    match call.func:
        case ast.Attribute(value=ast.Constant(value=str()), attr="format" | "join"):
            return True
    return False


def _sounds_like_a_rank(node: ast.AST) -> bool:
    name = last_name(node).lower()
    return any(part in name for part in OWN)


def _is_free_root(holder: Function | None, node: ast.Name, path: ast.AST) -> bool:
    """Whether an unknown caller gives the folder, which may then be a rank's own."""
    if holder is None or node.id not in holder.parameters or node.id in {"self", "cls"}:
        return False
    match path:
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return text.startswith("{") and bool(path.args) and path.args[0] is node
    if isinstance(path, ast.Call):
        return (bool(path.args) and path.args[0] is node) or (
            isinstance(path.func, ast.Attribute) and path.func.value is node
        )
    if isinstance(path, ast.BinOp):
        first = path
        while isinstance(first.left, ast.BinOp):
            first = first.left
        return first.left is node
    match path:
        case ast.JoinedStr(values=[ast.FormattedValue(value=value), *_]):
            return value is node
    return False
