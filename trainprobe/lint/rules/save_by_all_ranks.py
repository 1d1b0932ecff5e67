"""`torch.save` by all ranks to one path."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint import flow, ranks
from trainprobe.lint.calls import borne_by_call
from trainprobe.lint.collectives import wrapped
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Function, Module
from trainprobe.lint.program import Program
from trainprobe.lint.rewrites import guarded, name_of
from trainprobe.lint.scenes import Call, Place, among, callers, calls_of, given, origin

ID = "save-by-all-ranks"
CAUSE = "checkpoint-corrupt"
WHY = "All ranks write the same file at the same time; what is left may be cut off or mixed, and is found out when it is loaded."
FIX = Fix("Save under `if dist.get_rank() == 0:` and let all ranks meet in a barrier afterwards, or give each rank a path of its own.")
SOUNDS = re.compile(r"rank|master|is_main|main_process|should_save|primary|leader|chief|_zero|coordinator|\bgpu(_id)?\s*==\s*0", re.IGNORECASE)
"""Conditions that name the rank that saves in words that cannot be followed to it."""
STARTS = ("torch.distributed.init_process_group", "accelerate.Accelerator")


def find(program: Program) -> Iterator[Finding]:
    for call in calls_of(program, "torch.save"):
        path = given(program, call.module, call.node, "f", 1)
        if path is None or not among(program, call.module, *STARTS):
            continue
        if _is_guarded(program, call.module, call.node, 0) or not _is_one_path(program, path, 0):
            continue
        says = f"Every rank saves to {path.module.source_of(path.node)}."
        yield program.finding(ID, CAUSE, call.module, call.node, says=says, why=WHY, confidence=0.7, fix=_fix(program, call))


def _is_apart(program: Program, module: Module, node: ast.AST) -> bool:
    """Whether it runs only when its file is run by itself, in a file that starts no job."""
    named = any(isinstance(up, ast.If) and "__name__" in module.source_of(up.test) for up in module.ancestors(node))
    return named and not _starts(program, module)


def _starts(program: Program, module: Module) -> bool:
    return any(call.module is module for call in calls_of(program, *STARTS))


def _fix(program: Program, call: Call) -> Fix:
    """Put the save under a test of the rank, where nothing in it needs the other ranks."""
    module, statement = call.module, call.module.parents.get(call.node)
    inner = [one for one in ast.walk(call.node) if isinstance(one, ast.Call) and one is not call.node]
    dist = name_of(module, "torch.distributed", call.node.lineno)
    if not dist or not isinstance(statement, ast.Expr) or any(borne_by_call(program, module, one) for one in inner):
        return FIX
    if any(_method(one) in {"state_dict", "full_tensor"} and wrapped(program, module, one.func.value) & {"fsdp", "fsdp2", "deepspeed"} for one in inner):  # type: ignore[attr-defined]
        return FIX
    edits = guarded(module, statement, f"not {dist}.is_initialized() or {dist}.get_rank() == 0")
    return Fix(FIX.says, edits, safe=True) if edits is not None else FIX


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_guarded(program: Program, module: Module, node: ast.AST, depth: int) -> bool:
    """Whether only some ranks get here, or nothing is known of how this is reached."""
    if flow.guards(program, module, node) or any(isinstance(up, ast.If) and SOUNDS.search(module.source_of(up.test, 200)) for up in module.ancestors(node)):
        return True
    if _is_apart(program, module, node):
        return True
    function = module.function_of(node)
    if function is None or depth > 6:
        return False
    sites = callers(program, function)
    if not sites:
        return not _starts(program, module)
    return all(_is_guarded(program, site.module, site.node, depth + 1) for site in sites)


def _is_one_path(program: Program, path: Place, depth: int) -> bool:
    """Whether a path is put together here, and from nothing that differs from rank to rank."""
    behind = origin(program, path.module, path.node)
    if depth > 4 or isinstance(behind.node, ast.Name | ast.Attribute | ast.Subscript):
        return False
    for node in ast.walk(behind.node):
        if isinstance(node, ast.expr) and (ranks.kind_of(program, behind.module, node) or _sounds_like_a_rank(node)):
            return False
        if isinstance(node, ast.Call):
            called = program.dotted(behind.module, node.func)
            if called in {"io.BytesIO", "open", "tempfile.mkdtemp", "tempfile.NamedTemporaryFile", "tempfile.mkstemp", "os.getpid", "uuid.uuid4"} or not called:
                return False
            if program.function(called) is not None:
                return False
        if isinstance(node, ast.Name) and node is not behind.node and isinstance(node.ctx, ast.Load):
            inner = origin(program, behind.module, node)
            if inner.node is not node and any(ranks.kind_of(program, inner.module, each) for each in ast.walk(inner.node) if isinstance(each, ast.expr)):
                return False
            holder = behind.module.function_of(node)
            if isinstance(inner.node, ast.Subscript) and _is_free_root(holder, node, behind.node):
                return False
            if inner.node is node and _is_free_root(holder, node, behind.node):
                return False
    return True


def _sounds_like_a_rank(node: ast.AST) -> bool:
    word = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return any(part in word.lower() for part in ("rank", "proc", "shard", "worker", "tmp", "temp"))


def _is_free_root(holder: Function | None, node: ast.Name, path: ast.AST) -> bool:
    """A folder that somebody unknown gives may be a rank's own; a step or an epoch in the name does not matter."""
    if holder is None or node.id not in holder.parameters or node.id in {"self", "cls"}:
        return False
    if isinstance(path, ast.Call):
        return (bool(path.args) and path.args[0] is node) or (isinstance(path.func, ast.Attribute) and path.func.value is node)
    if isinstance(path, ast.BinOp):
        first = path
        while isinstance(first.left, ast.BinOp):
            first = first.left
        return first.left is node
    return isinstance(path, ast.JoinedStr) and bool(path.values) and isinstance(path.values[0], ast.FormattedValue) and path.values[0].value is node


RULE = Rule(ID, CAUSE, "All ranks save to one path", WHY, 0.7, find)
