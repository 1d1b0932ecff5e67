"""A data set that opens a file or database in its constructor and carries it into its workers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.calls import callers, reaches
from trainprobe.lint.expressions import origin
from trainprobe.lint.flow import before
from trainprobe.lint.loaders import is_dataset
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Class, Function, Module
from trainprobe.lint.program import Program

RULE = Rule(
    id="open-handle-dataset",
    cause="unpicklable-dataset",
    title="An open handle in a data set",
    why=(
        "Under spawn an open handle cannot be pickled. Under fork all workers share one handle and"
        " its file position, or library state that is not fork-safe: wrong rows, crashes, hangs."
    ),
    fix=(
        "Keep the path, open it in the worker at the first __getitem__, and drop the handle in"
        " __getstate__."
    ),
    confidence=0.75,
)


OPENERS = set(
    """
    open io.open gzip.open h5py.File lmdb.open lmdb.open().begin sqlite3.connect
    sqlite3.connect().cursor zipfile.ZipFile tarfile.open pathlib.Path().open netCDF4.Dataset
    av.open cv2.VideoCapture decord.VideoReader psycopg2.connect bz2.open lzma.open tables.open_file
    mmap.mmap
    """.split()
)
LEAVES_OUT = ("__getstate__", "__reduce__", "__reduce_ex__")


def find(program: Program) -> Iterator[Finding]:
    for cls in program.classes:
        if not is_dataset(program, cls) or any(
            program.names.method(cls, name) is not None for name in LEAVES_OUT
        ):
            continue
        for name, values in cls.attributes.items():
            for value in values:
                if not _is_open(program, cls.module, value) or _is_closed(cls, name, value):
                    continue
                where = (
                    "in the constructor"
                    if _at_construction(program, cls, value)
                    else "by __len__, which the loader asks first,"
                    if _at_length(program, cls, name, value)
                    else ""
                )
                if where:
                    message = (
                        f"self.{name} of {cls.name} is opened {where} and carried into every"
                        " worker."
                    )
                    yield RULE.finding(cls.module, cls.module.statement_of(value), message)
                    break


def _is_open(program: Program, module: Module, value: ast.expr) -> bool:
    """Whether a value is a handle, or a part of one that was just opened: `file["rows"]`."""
    if isinstance(value, ast.Subscript):
        made = origin(program, module, value.value)
        return isinstance(made.node, ast.Call) and (
            program.dotted(made.module, made.node.func) == "h5py.File"
        )
    return isinstance(value, ast.Call) and program.dotted(module, value.func) in OPENERS


def _at_length(program: Program, cls: Class, name: str, value: ast.expr) -> bool:
    """Whether the length is asked of what is open, in the process that then starts the workers."""
    holder, length = cls.module.function_of(value), program.names.method(cls, "__len__")
    asked = reaches(program, length) if length is not None else []
    return holder in asked and not any(_closes(call, name) for each in asked for call in each.calls)


def _is_closed(cls: Class, name: str, value: ast.expr) -> bool:
    """Whether the function that opens it closes it at its end."""
    holder = cls.module.function_of(value)
    return holder is not None and any(
        _closes(call, name) and before(cls.module, value, call) for call in holder.calls
    )


def _closes(call: ast.Call, name: str) -> bool:
    """Whether a call is `self.NAME.close()`."""
    match call.func:
        case ast.Attribute(value=ast.Attribute(attr=attribute), attr="close"):
            return attribute == name
    return False


def _at_construction(program: Program, cls: Class, value: ast.expr) -> bool:
    holder = cls.module.function_of(value)
    if holder is None:
        return False
    return holder.name == "__init__" or _is_called_by_constructor(program, holder)


def _is_called_by_constructor(program: Program, function: Function) -> bool:
    sites = callers(program, function)
    froms = [site.module.function_of(site.node) for site in sites]
    return bool(froms) and all(
        item is not None and item.name == "__init__" and item.cls is not None for item in froms
    )
