"""What every rank of a job comes to, and paths that are the same for all of them."""

from __future__ import annotations

import ast
import re

from trainprobe.lint import flow, ranks
from trainprobe.lint.alone import is_alone
from trainprobe.lint.calls import callers, calls_to, class_and_bases, makers, reaches, versions
from trainprobe.lint.conditions import is_turned_off
from trainprobe.lint.expressions import Expression, origin
from trainprobe.lint.jobs import calls_in_job
from trainprobe.lint.modules import Function, Module, last_name
from trainprobe.lint.order import Order
from trainprobe.lint.program import Program, remembered

EVERY_RANK = set(
    """
    save_model _save_checkpoint _save_optimizer_and_scheduler _save_rng_state training_step
    evaluate evaluation_loop compute_loss
    """.split()
)
"""Methods of transformers' Trainer that it calls on every rank, with the same folder."""

TRAINER = re.compile(r"(transformers|trl)\.([\w.]+\.)?\w*Trainer")

ENTRIES = (
    *("fire.Fire", "typer.run", "absl.app.run", "hydra.main", "click.command"),
    *("torch.multiprocessing.spawn", "accelerate.notebook_launcher"),
    "torch.distributed.elastic.multiprocessing.errors.record",
)

SOUNDS = re.compile(
    r"rank|master|is_main|main_process|should_save|primary|leader|chief|_zero|coordinator"
    r"|first_(worker|process|node)"
    r"|\bgpu(_id)?\s*==\s*0",
    re.IGNORECASE,
)
"""Conditions that name the rank that saves in words that cannot be followed to it."""

OWN = ("rank", "proc", "shard", "worker", "tmp", "temp", "gpu", "device")
"""Parts of names that differ between ranks: their own numbers, folders and GPUs."""

MOST_CALLS = 3
STARTS = ("torch.distributed.init_process_group", "accelerate.Accelerator")

FIRST = re.compile(r"(zero|main|master|process|rank_?0)\w*_first|lock\w*\(", re.IGNORECASE)


def is_of_trainer(program: Program, function: Function) -> bool:
    """Whether it overrides what transformers' Trainer calls on every rank."""
    return (
        function.cls is not None
        and function.name in EVERY_RANK
        and any(map(TRAINER.fullmatch, class_and_bases(program, function.cls.full_name)))
    )


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


def _is_under_rank(program: Program, module: Module, node: ast.AST) -> bool:
    """Whether a condition on the rank stands around it or above it, or ranks take turns there."""
    return (
        bool(flow.guards(program, module, node))
        or any(
            isinstance(up, ast.If) and SOUNDS.search(module.source_of(up.test, 200)) is not None
            for up in module.ancestors(node)
        )
        or _goes_first(module, node)
    )


def called_by_all(program: Program, module: Module, node: ast.AST) -> str:
    """` (called by every rank in line 240)`, for the calls in this file of the function that holds
    a statement; those under a condition on the rank are left out.
    """
    function = module.function_of(node)
    sites = callers(program, function) if function is not None else []
    lines = [
        f"line {site.node.lineno}"
        for site in sites
        if site.module is module and not _is_under_rank(program, module, site.node)
    ]
    return f" (called by every rank in {', '.join(lines[:MOST_CALLS])})" if lines else ""


def is_guarded(  # noqa: PLR0911 - one return per reason
    program: Program,
    module: Module,
    node: ast.AST,
    within: tuple[Function, ...] = (),
    *,
    by_asking: bool = False,
) -> bool:
    """Whether only some ranks get here, or nothing is known of how this is reached. `by_asking`: it
    is known of code that itself asks which rank it is.
    """
    if _is_under_rank(program, module, node):
        return True
    if is_alone(program, module, node) or _is_apart(program, module, node):
        return True
    function = module.function_of(node)
    if function is None:
        return not Order(program, _event_kind).top(module)
    if len(within) > 6:
        return False
    if is_of_trainer(program, function):
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
    if by_asking and asks_for_rank(program, function):
        return bool(sites) and all(
            _is_under_rank(program, site.module, site.node) for site in sites
        )
    of_ranks = [site for site in sites if calls_in_job(program, site.module, *STARTS)]
    if sites and not of_ranks:
        return True
    if of_ranks and all(is_turned_off(program, function, node, site) for site in of_ranks):
        return True
    sites = of_ranks
    if not sites:
        return not (_is_start(program, function) or _is_entry(program, function))
    return all(is_guarded(program, site.module, site.node, (*within, function)) for site in sites)


def _is_made_by_some(program: Program, function: Function) -> bool:
    """Whether only some ranks make an object with this method, or all of them make those with
    another version of it.
    """
    made = makers(program, function)
    of_ranks = [call for call in made if calls_in_job(program, call.module, *STARTS)]
    if not of_ranks:
        return bool(made) and bool(versions(program, function))
    return all(flow.guards(program, call.module, call.node) for call in of_ranks)


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


def is_one_path(
    program: Program, path: Expression, depth: int, *, given_alike: bool = False
) -> bool:
    """Whether a path is put together here, and from nothing that differs from rank to rank. With
    `given_alike`, callers give all ranks the same folder.
    """
    behind = origin(program, path.module, path.node)
    if isinstance(behind.node, ast.Name) and depth == 0:
        default = _default_path(program, behind.module, behind.node)
        if default is not None:
            return is_one_path(program, Expression(behind.module, default), depth + 1)
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


def is_in_job(program: Program, module: Module, function: Function | None) -> bool:
    """Whether several ranks run it: its job starts them, or it asks which rank it is."""
    if function is not None and (
        is_of_trainer(program, function) or asks_for_rank(program, function)
    ):
        return True
    return bool(calls_in_job(program, module, *STARTS))


@remembered
def asks_for_rank(program: Program, function: Function) -> bool:
    """Whether a function, or another method of its class, does something for some ranks alone: then
    all ranks come to the rest of it.
    """
    methods = function.cls.methods.values() if function.cls is not None else (function,)
    return any(
        ranks.test(program, function.module, node.test) is not None
        for method in methods
        for node in ast.walk(method.node)
        if isinstance(node, ast.If | ast.IfExp)
    )
