"""Run by the target's Python, alone: parse one script with that Python's own grammar and print what
it says of itself.

Nothing of the script is executed. It runs under `-I -S`, so that every module that can still be
found is the standard library's. Python ≥ 3.9, standard library only. Usage: python -I -S
script_reader.py SCRIPT
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import sys
from collections.abc import Iterator

_OPTIONAL = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_DISTRIBUTED = {
    "init_process_group",
    "Accelerator",
    "DistributedDataParallel",
    "fully_shard",
    "Trainer",
    "deepspeed",
    "hvd",
}
_SPAWNS = {"spawn", "start_processes", "elastic_launch"}
_GROUPS = {
    "init_process_group",
    "new_group",
    "InitProcessGroupKwargs",
    "DDPStrategy",
    "FSDPStrategy",
    "init_distributed",
}
_IN_SECONDS = {
    "weeks": 604800.0,
    "days": 86400.0,
    "hours": 3600.0,
    "minutes": 60.0,
    "seconds": 1.0,
    "milliseconds": 1e-3,
    "microseconds": 1e-6,
}
_BODIES = ("body", "orelse", "finalbody")


def read(path: str) -> dict[str, object]:
    """Return imports, optional imports, local modules, syntax error, whether it is distributed."""
    try:
        tree = _parse(path)
    except SyntaxError as error:
        at = {
            "file": error.filename or path,
            "line": error.lineno or 0,
            "says": error.msg or "invalid syntax",
            "text": (error.text or "").strip(),
        }
        return {
            "imports": [],
            "optional": [],
            "local": [],
            "syntax_error": at,
            "distributed": False,
            "spawns": False,
        }
    except ValueError as error:  # such as a null byte in the text
        at = {"file": path, "line": 0, "says": str(error), "text": ""}
        return {
            "imports": [],
            "optional": [],
            "local": [],
            "syntax_error": at,
            "distributed": False,
            "spawns": False,
        }
    needed: set[str] = set()
    optional: set[str] = set()
    local: set[str] = set()
    _sort_names(tree, os.path.dirname(os.path.abspath(path)), needed, optional, local, follow=True)
    names = _names_used(tree)
    return {
        "imports": sorted(needed),
        "optional": sorted(optional - needed),
        "local": sorted(local),
        "syntax_error": None,
        "distributed": bool(names & _DISTRIBUTED),
        "spawns": bool(names & _SPAWNS),
        "group_timeout_s": _group_timeout_s(tree),
    }


def _group_timeout_s(tree: ast.Module) -> float | None:
    """The shortest timeout of a process group in seconds; None without numbers."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _called(node)
            for keyword in node.keywords:
                if keyword.arg == "timeout" and name in _GROUPS:
                    found.append(_seconds(keyword.value))
                elif keyword.arg == "ddp_timeout":  # of transformers' TrainingArguments, in seconds
                    found.append(_number(keyword.value))
    return min((seconds for seconds in found if seconds), default=None)


def _called(call: ast.Call) -> str:
    return (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else call.func.id
        if isinstance(call.func, ast.Name)
        else ""
    )


def _seconds(value: ast.expr) -> float | None:
    """`timedelta(minutes=5)`, its parts by name or in the order days, seconds."""
    if not isinstance(value, ast.Call) or _called(value) != "timedelta":
        return None
    total = 0.0
    named = [(keyword.arg or "", keyword.value) for keyword in value.keywords]
    placed = [(("days", "seconds")[place], part) for place, part in enumerate(value.args[:2])]
    for name, part in [*placed, *named]:
        number = _number(part)
        if number is None or name not in _IN_SECONDS:
            return None
        total += number * _IN_SECONDS[name]
    return total


def _number(value: ast.expr) -> float | None:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        left, right = _number(value.left), _number(value.right)
        return left * right if left is not None and right is not None else None
    if (
        isinstance(value, ast.Constant)
        and isinstance(value.value, (int, float))
        and not isinstance(value.value, bool)
    ):
        return float(value.value)
    return None


def _parse(path: str) -> ast.Module:
    with open(path, "rb") as file:
        return ast.parse(file.read(), filename=path)


def _sort_names(
    tree: ast.Module,
    folder: str,
    needed: set[str],
    optional: set[str],
    local: set[str],
    *,
    follow: bool,
) -> None:
    for name, is_optional in _imported(tree.body, optional=False):
        neighbour = _neighbour(folder, name)
        if neighbour is None:
            if not _of_standard_library(name):
                (optional if is_optional else needed).add(name)
            continue
        if name in local:
            continue
        local.add(name)
        if follow and neighbour:
            try:
                below = _parse(neighbour)
            except (OSError, SyntaxError, ValueError):
                continue  # its own import will say so
            _sort_names(below, folder, needed, optional, local, follow=False)


def _imported(body: list[ast.stmt], *, optional: bool) -> Iterator[tuple[str, bool]]:
    """Yield the modules that the statements import, and whether each may be absent."""
    for statement in body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield alias.name.partition(".")[0], optional
        elif isinstance(statement, ast.ImportFrom):
            if statement.level == 0 and statement.module and statement.module != "__future__":
                yield statement.module.partition(".")[0], optional
        elif isinstance(statement, ast.Try) or type(statement).__name__ == "TryStar":
            guarded = optional or any(
                _catches_import_error(handler) for handler in getattr(statement, "handlers", [])
            )
            yield from _imported(getattr(statement, "body", []), optional=guarded)
            for handler in getattr(statement, "handlers", []):
                yield from _imported(handler.body, optional=True)
            yield from _imported(getattr(statement, "orelse", []), optional=optional)
            yield from _imported(getattr(statement, "finalbody", []), optional=optional)
        elif isinstance(statement, ast.If):
            if not _type_checking(statement.test):
                main = _is_main_guard(statement.test)
                yield from _imported(statement.body, optional=optional or not main)
            yield from _imported(statement.orelse, optional=True)
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for part in _BODIES:
                yield from _imported(
                    [
                        item
                        for item in getattr(statement, part, []) or []
                        if isinstance(item, ast.stmt)
                    ],
                    optional=optional,
                )


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in _OPTIONAL for kind in kinds)


def _type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _is_main_guard(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
    )


def _neighbour(folder: str, name: str) -> str | None:
    """Return the file of a module beside the script, "" for a plain folder, or None."""
    for candidate in (
        os.path.join(folder, name, "__init__.py"),
        os.path.join(folder, f"{name}.py"),
    ):
        if os.path.isfile(candidate):
            return candidate
    inside = os.path.join(folder, name)
    try:
        has_modules = any(entry.endswith(".py") for entry in os.listdir(inside))
    except OSError:
        return None
    return "" if has_modules else None


def _of_standard_library(name: str) -> bool:
    known = getattr(sys, "stdlib_module_names", None)
    if known is not None:
        return name in known
    try:  # Python 3.9: under -I -S nothing else can be found
        return name in sys.builtin_module_names or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _names_used(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.alias):
            names.update(node.name.split("."))
    return names


if __name__ == "__main__":
    print("\nTRAINPROBE " + json.dumps(read(sys.argv[1])))  # noqa: T201 - its one answer
