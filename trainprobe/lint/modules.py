"""One module: its tree, indexed once, so that no rule has to walk it."""

from __future__ import annotations

import ast
import os
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from trainprobe.lint.limits import DEEPEST, MOST_NODES, Unreadable

if TYPE_CHECKING:
    from trainprobe.lint.program import Program

N = TypeVar("N", bound=ast.AST)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Leaves that carry nothing: one shared object each, so they have no parent of their own.
SKIPPED = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


@dataclass(frozen=True, eq=False)
class Binding:
    """Where a name gets its value: `dotted` of imports, `value`, `index` of an unpacked tuple."""

    kind: Literal["import", "value", "unpack", "param", "def", "class", "other"]
    node: ast.AST
    value: ast.expr | None = None
    dotted: str = ""
    index: int = 0

    @property
    def line(self) -> int:
        line = getattr(self.node, "lineno", 0)
        return line or getattr(self.value, "lineno", 0)


@dataclass(eq=False, repr=False)
class Function:
    """A function or method of the project. `cls` is the class that holds it."""

    module: Module
    node: FunctionNode
    qualname: str
    cls: Class | None = None
    calls: list[ast.Call] = field(default_factory=list)
    returns: list[ast.Return] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.node.name

    def __repr__(self) -> str:
        return f"{self.module.name}.{self.qualname}"

    @property
    def parameters(self) -> list[str]:
        """Names of positional parameters, `self` included, then of keyword-only ones."""
        args = self.node.args
        return [posonlyarg.arg for posonlyarg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]

    def default_of(self, name: str) -> ast.expr | None:
        args = self.node.args
        positional = [*args.posonlyargs, *args.args]
        pairs: list[tuple[ast.arg, ast.expr | None]] = list(
            zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True)
        )
        pairs += list(zip(args.kwonlyargs, args.kw_defaults, strict=True))
        return next((value for item, value in pairs if item.arg == name), None)


@dataclass(eq=False, repr=False)
class Class:
    """A class of the project: its methods, and what its body or `self.` assigns."""

    module: Module
    node: ast.ClassDef
    qualname: str
    methods: dict[str, Function] = field(default_factory=dict)
    attributes: dict[str, list[ast.expr]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def full_name(self) -> str:
        return f"{self.module.name}.{self.qualname}"


class Module:
    """A parsed file. `name` is unique; `requested` is false for files that others import."""

    def __init__(
        self,
        path: str,
        name: str,
        text: str,
        tree: ast.Module,
        *,
        requested: bool = True,
        is_package: bool = False,
    ) -> None:
        self.path, self.name, self.text, self.tree, self.requested, self.is_package = (
            path,
            name,
            text,
            tree,
            requested,
            is_package,
        )
        self.folder = os.path.dirname(os.path.normpath(path))
        self.is_notebook = path.endswith(".ipynb")
        self.lines = text.split("\n")
        self.program: Program
        self.parents: dict[ast.AST, ast.AST] = {}
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, Class] = {}
        self.function_of_node: dict[ast.AST, Function] = {}
        self.class_of_node: dict[ast.AST, Class] = {}
        self.bindings: dict[ast.AST, dict[str, list[Binding]]] = {}
        self.scope_above: dict[Scope, Scope] = {}
        """The scope around each scope; that of a default or a decorator is the same."""
        self.star_imports: list[str] = []
        self.top_calls: list[ast.Call] = []
        self._by_type: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        self._index()

    def of(self, kind: type[N]) -> list[N]:
        """All nodes of exactly this type, in no promised order."""
        return self._by_type.get(kind, [])  # type: ignore[return-value]

    def scope_of(self, node: ast.AST) -> Scope:
        """The function, class or module that directly holds `node` (never `node` itself)."""
        parents = self.parents
        up = parents.get(node)
        while up is not None and up.__class__ not in SCOPES_SET:
            up = parents.get(up)
        return up if up is not None else self.tree  # type: ignore[return-value]

    def function_of(self, node: ast.AST) -> Function | None:
        """The nearest enclosing function, lambdas passed over; None at module level."""
        parents = self.parents
        up = parents.get(node)
        while up is not None and up.__class__ not in FUNCTIONS_SET:
            up = parents.get(up)
        return self.function_of_node.get(up) if up is not None else None

    def class_of(self, node: ast.AST) -> Class | None:
        """The nearest enclosing class."""
        up = self.parents.get(node)
        while up is not None and not isinstance(up, ast.ClassDef):
            up = self.parents.get(up)
        return self.class_of_node.get(up) if up is not None else None

    def ancestors(self, node: ast.AST) -> list[ast.AST]:
        """From the parent of `node` up to the module."""
        found = []
        up = self.parents.get(node)
        while up is not None:
            found.append(up)
            up = self.parents.get(up)
        return found

    def is_of_script(self, node: ast.AST) -> bool:
        """Whether it runs only when this file is the script: under `if __name__ == "__main__"`."""
        child = node
        for up in self.ancestors(node):
            if isinstance(up, ast.If) and child in up.body and _asks_name(up.test):
                return True
            child = up
        return False

    def statement_of(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def source_of(self, node: ast.AST, most: int = 60) -> str:
        """The source of an expression on one line, cut to `most` characters."""
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if not first or last > len(self.lines):
            return ""
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
        if first == last:
            text = self.lines[first - 1].encode()[start:end].decode(errors="replace")
        else:
            text = " ".join(
                [
                    self.lines[first - 1].encode()[start:].decode(errors="replace"),
                    *self.lines[first : last - 1][:5],
                ]
            )
            if last - first < 6:
                text += " " + self.lines[last - 1].encode()[:end].decode(errors="replace")
        text = " ".join(text.split())
        return text if len(text) <= most else text[: most - 1] + "…"

    def line_of(self, node: ast.AST, reader: Module) -> str:
        """Return "line 12", with the name of the file where a reader of `reader` needs it."""
        line = f"line {getattr(node, 'lineno', 0)}"
        return line if self is reader else f"{line} of {os.path.basename(self.path)}"

    def column_of(self, line: int, offset: int) -> int:
        """Return the column in characters of a byte offset, as `ast` gives them."""
        return len(self.lines[line - 1].encode()[:offset].decode(errors="replace"))

    # The index: one walk with a stack of our own, so that no nesting can exhaust Python's.
    def _index(self) -> None:  # noqa: PLR0912 - one walk is what makes it fast
        by_type, parents = self._by_type, self.parents
        self.bindings[self.tree] = {}
        stack: list[tuple[ast.AST, Scope, Function | None, str, int]] = [
            (self.tree, self.tree, None, "", 0)
        ]
        visited = 0
        while stack:
            node, scope, function, prefix, depth = stack.pop()
            kind = type(node)
            visited += 1
            if depth > DEEPEST:
                raise Unreadable(f"It is nested deeper than {DEEPEST} levels.")
            if visited > MOST_NODES:
                raise Unreadable("It holds more expressions than are read from one file.")
            by_type[kind].append(node)
            if kind in BINDERS:
                self._bind(node, scope)
            if kind is ast.Call:
                (function.calls if function is not None else self.top_calls).append(node)  # type: ignore[arg-type]
            elif kind is ast.Return and function is not None:
                function.returns.append(node)  # type: ignore[arg-type]
            inner_scope, inner_function, inner_prefix = scope, function, prefix
            if kind in SCOPES_SET and node is not self.tree:
                self.scope_above[node] = scope  # type: ignore[index]
                inner_scope = node  # type: ignore[assignment]
                self.bindings[node] = {}
                if isinstance(node, FUNCTIONS):
                    inner_function = self._function(node, scope, prefix)
                    inner_prefix = f"{inner_function.qualname}.<locals>."
                elif isinstance(node, ast.ClassDef):
                    inner_function = None if scope is self.tree else function
                    inner_prefix = self._class(node, prefix).qualname + "."
                elif isinstance(node, ast.Lambda):
                    self._parameters(node.args, node)
            outside: Collection[ast.AST] = ()
            if kind in DECORATED:
                outside = node.decorator_list  # type: ignore[attr-defined]
            deeper = depth + 1
            # backwards, so that they come off the stack in the order of the source
            for name in FIELDS[kind]:
                value = getattr(node, name, None)
                if value.__class__ is list:
                    for item in reversed(value):
                        if item.__class__ in HELD:
                            parents[item] = node
                            stack.append(
                                (item, scope, function, prefix, deeper)
                                if item in outside
                                else (item, inner_scope, inner_function, inner_prefix, deeper)
                            )
                elif value.__class__ in HELD:
                    parents[value] = node
                    stack.append((value, inner_scope, inner_function, inner_prefix, deeper))

    def _function(self, node: FunctionNode, scope: Scope, prefix: str) -> Function:
        cls = self.class_of_node.get(scope)
        made = Function(self, node, prefix + node.name, cls)
        self.function_of_node[node] = made
        self.functions[made.qualname] = made
        if cls is not None:
            cls.methods[node.name] = made
        self._parameters(node.args, node)
        return made

    def _class(self, node: ast.ClassDef, prefix: str) -> Class:
        made = Class(self, node, prefix + node.name)
        self.class_of_node[node] = made
        self.classes[made.qualname] = made
        return made

    def _parameters(self, args: ast.arguments, scope: Scope) -> None:
        for posonlyarg in (
            *args.posonlyargs,
            *args.args,
            *args.kwonlyargs,
            *(each for each in (args.vararg, args.kwarg) if each),
        ):
            self._add(scope, posonlyarg.arg, Binding("param", posonlyarg, posonlyarg.annotation))

    def _add(self, scope: Scope, name: str, binding: Binding) -> None:
        self.bindings[scope].setdefault(name, []).append(binding)
        if (
            isinstance(scope, ast.ClassDef)
            and binding.kind == "value"
            and binding.value is not None
        ):
            self.class_of_node[scope].attributes.setdefault(name, []).append(binding.value)

    def _bind(self, node: ast.AST, scope: Scope) -> None:  # noqa: PLR0912 - one branch per kind of statement that binds
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._target(target, value, node, scope)
            case ast.AnnAssign(target=ast.Name(id=name), value=None, annotation=annotation):
                self._add(scope, name, Binding("other", node, annotation))
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
                | ast.withitem(optional_vars=ast.expr() as target, context_expr=value)
            ):
                self._target(target, value, node, scope)
            case (
                ast.AugAssign(target=target)
                | ast.For(target=target)
                | ast.AsyncFor(target=target)
                | ast.comprehension(target=target)
            ):
                self._target(target, None, node, scope)
            case ast.Import(names=names):
                for alias in names:
                    bound = alias.asname or alias.name.split(".")[0]
                    dotted = alias.name if alias.asname else bound
                    self._add(scope, bound, Binding("import", node, dotted=dotted))
            case ast.ImportFrom(names=names):
                base = self._absolute(node)
                for alias in names:
                    if alias.name == "*":
                        self.star_imports.append(base)
                    else:
                        binding = Binding("import", node, dotted=f"{base}.{alias.name}")
                        self._add(scope, alias.asname or alias.name, binding)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self._add(scope, name, Binding("def", node))
            case ast.ClassDef(name=name):
                self._add(scope, name, Binding("class", node))
            case ast.ExceptHandler(name=str(name)):
                self._add(scope, name, Binding("other", node))

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        parts = parts[: len(parts) - (node.level - 1 if self.is_package else node.level)]
        return ".".join([*parts, *([node.module] if node.module else [])])

    def _target(
        self, target: ast.expr, value: ast.expr | None, node: ast.AST, scope: Scope
    ) -> None:
        other = Binding("other", node)
        match target:
            case ast.Name(id=name):
                self._add(scope, name, Binding("value", node, value) if value else other)
            case ast.Starred(value=inner):
                self._target(inner, None, node, scope)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                sequence = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(items)
                for index, item in enumerate(items):
                    if sequence:
                        self._target(item, value.elts[index], node, scope)  # type: ignore[union-attr]
                    elif isinstance(item, ast.Name):
                        part = Binding("unpack", node, value, index=index)
                        self._add(scope, item.id, part if value else other)
                    else:
                        self._target(item, None, node, scope)
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if value:
                holder = self.function_of_node.get(scope)
                cls = holder.cls if holder is not None else None
                if holder is not None and cls is not None and holder.parameters[:1] == [owner]:
                    cls.attributes.setdefault(name, []).append(value)


def _asks_name(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))


def method_called(call: ast.Call) -> str:
    """Return "save" for `x.save()`, "" for a call of a plain name."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def last_name(node: ast.AST) -> str:
    """Return "size" for `size` and for `x.size`, "" for anything else."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def receiver_of(node: ast.AST, *methods: str) -> ast.expr | None:
    """Return `x` of a call `x.save()` of one of these methods, None for anything else."""
    match node:
        case ast.Call(func=ast.Attribute(value=receiver, attr=name)) if name in methods:
            return receiver
    return None


HELD = {
    kind
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and not issubclass(kind, SKIPPED)
}
"""The kinds of nodes that a module holds."""
SCOPES_SET = set(SCOPES)
FUNCTIONS_SET = set(FUNCTIONS)
DECORATED = {*FUNCTIONS, ast.ClassDef}
LEAVES = {ast.Name, ast.Constant, ast.alias, ast.Pass, ast.Break, ast.Continue}
"""Kinds whose fields hold no node that a module holds."""


FIELDS = {kind: () if kind in LEAVES else kind._fields[::-1] for kind in HELD}
"""The fields of each kind that may hold nodes, the last first."""
BINDERS = {
    ast.Assign,
    ast.AnnAssign,
    ast.NamedExpr,
    ast.AugAssign,
    ast.For,
    ast.AsyncFor,
    ast.comprehension,
    ast.withitem,
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.ExceptHandler,
}
