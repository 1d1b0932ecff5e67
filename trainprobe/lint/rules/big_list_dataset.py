"""A data set that holds all its rows as Python objects, and is read by workers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.expressions import origin
from trainprobe.lint.loaders import dataset_of, has_workers, is_dataset, loaders
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Class, Function, Module
from trainprobe.lint.program import Program

RULE = Rule(
    id="big-list-dataset",
    cause="dataset-memory-blowup",
    title="A data set of Python objects",
    why=(
        "Every worker of every rank gets its own copy: at once under spawn, page by page under"
        " fork, because reading a Python object writes its reference count. Memory grows over the"
        " epoch by about the size of the list for each worker."
    ),
    fix=(
        "Keep the rows in arrays (numpy, Arrow, a memory-mapped file) or keep only offsets and read"
        " each row on demand."
    ),
    confidence=0.45,
)


LOADS = set(
    """
    json.load json.loads pickle.load yaml.safe_load list sorted csv.reader csv.DictReader
    orjson.loads ujson.load jsonlines.open
    """.split()
)
OPENS = set(
    """
    open() io.open() gzip.open() pathlib.Path().open() bz2.open() lzma.open() csv.reader()
    csv.DictReader() jsonlines.open()
    """.split()
)
KEEPS_LITTLE = ("__getstate__", "__reduce__", "__reduce_ex__")


def find(program: Program) -> Iterator[Finding]:
    worked: set[Class] = set()
    for loader in loaders(program):
        cls = dataset_of(program, loader)
        if cls is not None and has_workers(program, loader):
            worked.update([cls, *_bases(program, cls)])
    for cls in program.classes:
        if not is_dataset(program, cls) or any(name in cls.methods for name in KEEPS_LITTLE):
            continue
        for name, values in cls.attributes.items():
            if not _is_the_data(program, cls, name):
                continue
            for value in values:
                place = _filled(program, cls, name, value)
                if place is not None:
                    message = (
                        f"self.{name} of {cls.name} holds all rows of a file as Python objects."
                    )
                    confidence = RULE.confidence if cls in worked else 0.3
                    yield RULE.finding(cls.module, place, message, confidence=confidence)
                    break


def _bases(program: Program, cls: Class) -> list[Class]:
    return [
        item
        for base in cls.node.bases
        if (item := program.class_named(program.dotted(cls.module, base))) is not None
    ]


def _is_the_data(program: Program, cls: Class, name: str) -> bool:
    """Whether samples are taken out of it: `self.name[i]` in `__getitem__`, or it is the length."""
    for method in ("__getitem__", "__len__"):
        function = program.names.method(cls, method)
        if function is None:
            continue
        for node in ast.walk(function.node):
            match node:
                case ast.Subscript(value=taken) | ast.Call(func=ast.Name(id="len"), args=[taken]):
                    if _is_own(taken, name):
                        return True
    return False


def _is_own(node: ast.expr, name: str) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
            return attribute == name
    return False


def _filled(program: Program, cls: Class, name: str, value: ast.expr) -> ast.AST | None:
    """Where the attribute gets the rows of a file; None where it gets something else."""
    holder = cls.module.function_of(value)
    if holder is None or holder.name in {"__getitem__", "__len__", "__iter__"}:
        return None
    if _holds_rows(program, cls.module, value, 0):
        return cls.module.statement_of(value)
    if (isinstance(value, ast.List) and not value.elts) or (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "list"
    ):
        return _appended(program, holder, name)
    return None


def _appended(program: Program, holder: Function, name: str) -> ast.AST | None:
    for call in holder.calls:
        if not (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in {"append", "extend"}
            and _is_own(call.func.value, name)
        ):
            continue
        for node in holder.module.ancestors(call):
            if isinstance(node, ast.For) and _is_open(program, holder.module, node.iter):
                return call
            if node is holder.node:
                break
    return None


def _is_open(program: Program, module: Module, node: ast.expr) -> bool:
    """Whether an expression goes over the lines of a file."""
    name = program.dotted(module, node)
    if (
        name in {"enumerate()", "tqdm.tqdm()", "tqdm.auto.tqdm()"}
        and isinstance(node, ast.Call)
        and node.args
    ):
        return _is_open(program, module, node.args[0])
    base = name.removesuffix(".readlines()").removesuffix(".splitlines()").removesuffix(".read()")
    return base in OPENS or base == "pathlib.Path().read_text()"


def _holds_rows(program: Program, module: Module, node: ast.expr, depth: int) -> bool:
    if depth > 4:
        return False
    if isinstance(node, ast.ListComp):
        return _is_open(program, module, node.generators[0].iter) or _holds_rows(
            program, module, node.generators[0].iter, depth + 1
        )
    if isinstance(node, ast.Call):
        called = program.dotted(module, node.func)
        if called in {"list", "sorted"}:
            return bool(node.args) and (
                _is_open(program, module, node.args[0])
                or _holds_rows(program, module, node.args[0], depth + 1)
            )
        if called in LOADS:
            return True
        if _is_open(program, module, node) and called not in {
            "open",
            "io.open",
            "gzip.open",
            "pathlib.Path().open",
        }:
            return called.endswith((".readlines", ".splitlines"))
        function = program.called(module, node)
        if function is not None and function.name != "__init__":
            return any(
                returned.value is not None
                and _holds_rows(program, function.module, returned.value, depth + 1)
                for returned in function.returns
            )
        return False
    behind = origin(program, module, node)
    return (
        behind.node is not node
        and isinstance(behind.node, ast.Call | ast.ListComp)
        and _holds_rows(program, behind.module, behind.node, depth + 1)
    )
