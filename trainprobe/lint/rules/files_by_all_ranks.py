"""Files and folders that every rank makes, deletes or writes, and loggers that every rank opens.

A hint: whether several ranks come there is often settled far away, by a flag or by who calls a
library.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from trainprobe.lint import flow
from trainprobe.lint.calls import Call, calls_ending_in, calls_to
from trainprobe.lint.every_rank import (
    OWN,
    called_by_all,
    is_guarded,
    is_in_job,
    is_of_trainer,
    is_one_path,
)
from trainprobe.lint.expressions import Expression, origin, resolved_argument
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import SCOPES, Module, last_name, receiver_of
from trainprobe.lint.program import Program
from trainprobe.lint.values import argument

RULE = Rule(
    id="files-by-all-ranks",
    cause="user-exception",
    title="All ranks change the same file or folder",
    why=(
        "All ranks come to this at the same time. What one of them has made or deleted in between"
        " ends another one with FileExistsError or FileNotFoundError, and the rest wait for it."
    ),
    fix=(
        "Do it under `if dist.get_rank() == 0:`, with a barrier for all ranks before anyone relies"
        " on it."
    ),
    confidence=0.45,
)
WRITES_WHY = (
    "All ranks write the same file at the same time. It may be mixed or cut off, and a rank that"
    " reads it meanwhile finds half of it."
)
LOGS_WHY = (
    "Each rank opens a run of its own: the values of all ranks are mixed, folders are made at the"
    " same moment, and a service is asked once for each rank."
)
MAKE_FIX = "os.makedirs(path, exist_ok=True), or make it on one rank and let the others wait."
DELETE_FIX = "Delete it on one rank alone; shutil.rmtree(path, ignore_errors=True) is for all."
LOGS_FIX = "Open it under `if dist.get_rank() == 0:`, and give the other ranks None or a dummy."

_EXISTS = re.compile(r"\b(?:exists|isdir|is_dir|isfile|is_file|access)\(")
_OPTIONS = re.compile(
    r"(?:^|\.)(?:args?|cfg|conf|config|configs|opts?|hparams|params|flags)$", re.IGNORECASE
)
_FOLDERS = re.compile(
    r"(?i)(?:^|_)(?:out|output|save|saved|log|logs|logging|ckpt|checkpoints?|results?|exp|work"
    r"|run|trace|tb|tensorboard|dump|export)\w*_?(?:dir|directory|path|folder|root|file|name)$"
    r"|(?:^|_)(?:logdir|outdir|savedir|workdir)$"
)
_WRITES = {"w", "wb", "w+", "wt", "x", "xb"}
_CAUGHT = re.compile(r"FileExists|FileNotFound|OSError|IOError|Exception|^$")
WRITERS = (
    "torch.utils.tensorboard.SummaryWriter",
    "tensorboardX.SummaryWriter",
    "torch.utils.tensorboard.writer.SummaryWriter",
)


class Change(NamedTuple):
    """A call that changes a path, what it does, and how it is told; no path for a service."""

    call: Call
    path: Expression | None
    says: str
    why: str = ""
    fix: str = ""
    cause: str = ""


def find(program: Program) -> Iterator[Finding]:
    for change in _changes(program):
        call = change.call
        module, function = call.module, call.module.function_of(call.node)
        of_trainer = function is not None and is_of_trainer(program, function)
        if not is_in_job(program, module, function):
            continue
        if change.path is not None and not _is_shared(program, change.path, alike=of_trainer):
            continue
        if is_guarded(program, module, call.node, by_asking=True):
            continue
        yield RULE.finding(
            module,
            call.node,
            f"{change.says.removesuffix('.')}{called_by_all(program, module, call.node)}.",
            cause=change.cause,
            why=change.why,
            fix=change.fix,
        )


def _changes(program: Program) -> Iterator[Change]:
    yield from _made(program)
    yield from _deleted(program)
    yield from _written(program)
    yield from _logged(program)


def _made(program: Program) -> Iterator[Change]:
    """Folders that are looked for and then made, so that another rank may come in between."""
    for call in (
        *calls_to(program, "os.makedirs", "os.mkdir"),
        *_methods(program, "mkdir"),
    ):
        path = _path_of(program, call, "name" if call.name == "os.makedirs" else "path", "mkdir")
        if path is None or not _is_asked_for(call) or _is_caught(call.module, call.node):
            continue
        if argument(call.node, "exist_ok", 2) is not None:
            continue
        says = (
            f"Every rank asks whether {_word(path)} is there and makes it where it is not; the"
            " second to make it fails."
        )
        yield Change(call, path, says, fix=MAKE_FIX)


def _deleted(program: Program) -> Iterator[Change]:
    for call in (
        *calls_to(program, "shutil.rmtree", "os.remove", "os.unlink", "os.rmdir"),
        *_methods(program, "unlink"),
    ):
        path = _path_of(program, call, "path", "unlink")
        if path is None or _is_caught(call.module, call.node):
            continue
        if argument(call.node, "ignore_errors", 1) is not None and call.name == "shutil.rmtree":
            continue
        if (
            argument(call.node, "missing_ok", 0) is not None
            and last_name(call.node.func) == "unlink"
        ):
            continue
        says = f"Every rank deletes {_word(path)}; all but the first find it gone."
        yield Change(call, path, says, fix=DELETE_FIX)


def _written(program: Program) -> Iterator[Change]:
    for call in calls_to(program, "open"):
        mode = resolved_argument(program, call, "mode", 1)
        path = resolved_argument(program, call, "file", 0)
        if mode is None or path is None or program.value(*mode) not in _WRITES:
            continue
        says = f"Every rank writes {_word(path)}."
        yield Change(call, path, says, WRITES_WHY, cause="checkpoint-corrupt")


def _logged(program: Program) -> Iterator[Change]:
    for call in calls_to(program, *WRITERS):
        path = resolved_argument(program, call, "log_dir", 0) or resolved_argument(
            program, call, "logdir", 0
        )
        says = "Every rank opens its own TensorBoard writer in the same folder."
        yield Change(call, path, says, LOGS_WHY, LOGS_FIX)
    for call in calls_to(program, "wandb.init"):
        if any(argument(call.node, name) is not None for name in ("group", "mode")):
            continue
        says = "Every rank starts its own run of Weights & Biases."
        yield Change(call, None, says, LOGS_WHY, LOGS_FIX, "remote-service-wait")


def _methods(program: Program, name: str) -> Iterator[Call]:
    """Calls of a method of paths, which no class of the project has."""
    for call in calls_ending_in(program, name):
        if receiver_of(call.node, name) is not None and call.name not in ("os.mkdir", "os.unlink"):
            yield call


def _path_of(program: Program, call: Call, name: str, method: str) -> Expression | None:
    receiver = receiver_of(call.node, method)
    if receiver is not None and not call.name.startswith("os."):
        return Expression(call.module, receiver)
    return resolved_argument(program, call, name, 0)


def _is_asked_for(call: Call) -> bool:
    """Whether a condition around it asks if something is there."""
    for up in call.module.ancestors(call.node):
        if isinstance(up, ast.If) and _EXISTS.search(call.module.source_of(up.test, 200)):
            return True
        if isinstance(up, SCOPES):
            return False
    return False


def _is_caught(module: Module, node: ast.AST) -> bool:
    return any(
        _CAUGHT.search(module.source_of(one.type) if one.type else "")
        for tried in flow.tried_in(module, node)
        for one in tried.handlers
    )


def _is_shared(program: Program, path: Expression, *, alike: bool) -> bool:
    """Whether all ranks name the same path: put together here, given on the command line, or by a
    name as folders of a job have.
    """
    text = path.module.source_of(path.node, 200).lower()
    behind = origin(program, path.module, path.node)
    source = behind.module.source_of(behind.node, 400).lower()
    if any(part in one for one in (text, source) for part in (*OWN, "pid", "uuid", "random")):
        return False
    if is_one_path(program, path, 0, given_alike=alike):
        return True
    names = [node for node in ast.walk(behind.node) if isinstance(node, ast.Name | ast.Attribute)]
    return any(_is_told(node) for node in names)


def _is_told(node: ast.Name | ast.Attribute) -> bool:
    if _FOLDERS.search(last_name(node)):
        return True
    return isinstance(node, ast.Attribute) and _OPTIONS.search(last_name(node.value)) is not None


def _word(path: Expression) -> str:
    return path.module.source_of(path.node, 60)
