"""Constant values, through assignments, defaults, dictionaries, configs, argparse, arithmetic."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from trainprobe.lint.modules import Binding, Class, Module, receiver_of

if TYPE_CHECKING:
    from trainprobe.lint.program import Program

DEEPEST = 16
LARGEST = 1 << 62


class Unknown:
    """The answer where no constant is certain. It is false, and equal to nothing else."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()
LOADERS = set(
    """
    yaml.safe_load yaml.load yaml.full_load json.load json.loads omegaconf.OmegaConf.load
    tomllib.load toml.load
    """.split()
)


BUILT_IN: dict[str, Callable[..., Any]] = {
    item.__name__: item for item in (int, float, str, bool, min, max, len, abs)
}
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


class Values:
    """Values of expressions of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[ast.AST, Any] = {}
        self._cuts = 0

    def of(self, module: Module, node: ast.AST | None, depth: int = 0) -> Any:
        """The constant that `node` has wherever it runs, or UNKNOWN; bindings of a name must agree.
        Answers are remembered by node, or names bound to each other would multiply.
        """
        if isinstance(node, ast.Constant):
            return node.value
        if node is None or depth > DEEPEST:
            self._cuts += node is not None
            return UNKNOWN
        if node in self._known:
            return self._known[node]
        self._known[node] = UNKNOWN  # ends circles
        cuts = self._cuts
        answer = self._of(module, node, depth)
        if self._cuts > cuts and depth and answer is UNKNOWN:
            del self._known[node]  # from nearer it may be seen
        else:
            self._known[node] = answer
        return answer

    def _of(self, module: Module, node: ast.AST, depth: int) -> Any:  # noqa: PLR0911 - one branch per kind of expression
        if isinstance(node, ast.Name):
            return self._name(module, node, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute(module, node, depth)
        if isinstance(node, ast.BinOp):
            return _arithmetic(
                node.op,
                self.of(module, node.left, depth + 1),
                self.of(module, node.right, depth + 1),
            )
        if isinstance(node, ast.UnaryOp):
            return _unary(node.op, self.of(module, node.operand, depth + 1))
        if isinstance(node, ast.List | ast.Tuple | ast.Set) and len(node.elts) <= 1000:
            values = [self.of(module, element, depth + 1) for element in node.elts]
            return (
                UNKNOWN
                if any(item is UNKNOWN for item in values)
                else (tuple(values) if isinstance(node, ast.Tuple) else values)
            )
        if isinstance(node, ast.Dict) and len(node.keys) <= 1000:
            return {
                key: self.of(module, value, depth + 1)
                for name, value in zip(node.keys, node.values, strict=True)
                if name is not None
                and isinstance(key := self.of(module, name, depth + 1), str | int)
            }
        if isinstance(node, ast.Subscript):
            return _element(
                self.of(module, node.value, depth + 1), self.of(module, node.slice, depth + 1)
            )
        if isinstance(node, ast.BoolOp):
            return self._either(module, node, depth)
        if isinstance(node, ast.Call):
            return self._call(module, node, depth)
        return UNKNOWN

    def keyword(
        self,
        module: Module,
        call: ast.Call,
        name: str,
        position: int | None = None,
        default: Any = UNKNOWN,
    ) -> Any:
        """An argument's value: `default` if not given, UNKNOWN if `**` or `*` may hold it."""
        node = argument(call, name, position)
        if node is not None:
            return self.of(module, node)
        for word in call.keywords:
            if word.arg is None:
                spread = self.of(module, word.value)
                return spread.get(name, default) if isinstance(spread, dict) else UNKNOWN
        return UNKNOWN if any(isinstance(item, ast.Starred) for item in call.args) else default

    def _either(self, module: Module, node: ast.BoolOp, depth: int) -> Any:
        for item in node.values:
            value = self.of(module, item, depth + 1)
            if value is UNKNOWN:
                return UNKNOWN
            if bool(value) == isinstance(node.op, ast.Or):
                return value
        return value

    def _name(self, module: Module, node: ast.Name, depth: int) -> Any:
        scope, found = self.program.names.lookup(module, node.id, node)
        if not found or len(found) > 8:
            return UNKNOWN
        return _agreed([self._binding(module, item, node.id, scope, depth) for item in found])

    def _binding(
        self, module: Module, binding: Binding, name: str, scope: ast.AST, depth: int
    ) -> Any:
        if binding.kind == "value":
            return self.of(module, binding.value, depth + 1)
        if binding.kind == "unpack":
            return _element(self.of(module, binding.value, depth + 1), binding.index)
        if binding.kind == "param":
            function = module.function_of_node.get(scope)
            if function is not None:
                return self._parameter(module, function.node, name, depth)
        if binding.kind == "import":
            target = self.program.import_target(module, binding.dotted)
            head, _, last = target.rpartition(".")
            other = self.program.modules.get(head)
            if other is not None and other is not module:
                there = other.bindings[other.tree].get(last, [])
                if len(there) == 1:
                    return self._binding(other, there[0], last, other.tree, depth + 1)
        return UNKNOWN

    def _parameter(
        self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, depth: int
    ) -> Any:
        """The one value that all calls give a parameter, its default without calls."""
        known: dict[tuple[ast.AST, str], Any] = self.program.memory.setdefault("parameters", {})
        if (node, name) not in known:
            known[node, name] = UNKNOWN  # ends circles of functions that hand a parameter on
            known[node, name] = self._given_everywhere(module, node, name, depth)
        return known[node, name]

    def _given_everywhere(
        self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, depth: int
    ) -> Any:
        function = module.function_of_node[node]
        default = function.default_of(name)
        calls = self.program.memory.get("call sites", {}).get(function)
        if calls is None:
            return self.of(module, default, depth + 1) if default is not None else UNKNOWN
        shift = 1 if function.cls is not None else 0
        position = function.parameters.index(name) - shift if name in function.parameters else None
        values = []
        for where, call in calls[:8]:
            item = argument(call, name, position)
            values.append(
                self.of(where, item, depth + 1)
                if item is not None
                else self.of(module, default, depth + 1)
            )
            if values[-1] is UNKNOWN:
                break
        return _agreed(values)

    def _attribute(self, module: Module, node: ast.Attribute, depth: int) -> Any:
        base = self.program.dotted(module, node.value)
        if base.endswith(("parse_args()", "parse_args()[]", "parse_known_args()[]")):
            return self._option(module, node.attr, depth)
        cls = self.program.names.definition(base.removesuffix("()"))
        if isinstance(cls, Class):
            found = self.program.names.attribute_values(cls, node.attr)
            return _agreed([self.of(where, value, depth + 1) for where, value in found[:8]])
        if base in self.program.modules:
            other = self.program.modules[base]
            there = other.bindings[other.tree].get(node.attr, [])
            if len(there) != 1:
                return UNKNOWN
            return self._binding(other, there[0], node.attr, other.tree, depth + 1)
        holder = self.of(module, node.value, depth + 1)
        if isinstance(holder, dict):
            return holder.get(node.attr, UNKNOWN)
        return self._option(module, node.attr, depth) if base == "~args" else UNKNOWN

    def _option(self, module: Module, name: str, depth: int) -> Any:
        """The default that `add_argument` declares for an option, anywhere in the program; unknown
        where this module gives it another value: `args.workers = args.workers // world_size`.
        """
        if any(
            isinstance(target, ast.Attribute) and target.attr == name
            for statement in module.of(ast.Assign)
            for target in statement.targets
        ):
            return UNKNOWN
        options = self.program.memory.get("options")
        if options is None:
            options = self.program.memory["options"] = {}
            for where in self.program.modules.values():
                for call in where.of(ast.Call):
                    if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
                        _declare(options, where, call)
        found = options.get(name, [])
        own = [item for item in found if item[0] is module] or found
        return _agreed([self.of(where, value, depth + 1) for where, value in own[:4]])

    def _call(self, module: Module, node: ast.Call, depth: int) -> Any:
        called = self.program.dotted(module, node.func)
        if called in BUILT_IN and not node.keywords:
            return _built_in(called, [self.of(module, item, depth + 1) for item in node.args])
        if called == "dict" and not node.args:
            return {
                word.arg: self.of(module, word.value, depth + 1)
                for word in node.keywords
                if word.arg
            }
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
            holder = self.of(module, node.func.value, depth + 1)
            if isinstance(holder, dict):
                key = self.of(module, node.args[0], depth + 1)
                if key is UNKNOWN or key in holder:
                    return holder.get(key, UNKNOWN)
                return self.of(module, node.args[1], depth + 1) if len(node.args) > 1 else None
        if called in LOADERS and node.args:
            return self._loaded(module, node.args[0], depth)
        function = self.program.function(called)
        if (
            function is not None
            and len(function.returns) == 1
            and function.returns[0].value is not None
        ):
            return self.of(function.module, function.returns[0].value, depth + 2)
        return UNKNOWN

    def _loaded(self, module: Module, node: ast.expr, depth: int) -> Any:
        """What a configuration file holds that is opened by a literal path."""
        if isinstance(node, ast.Name):
            binding = self.program.names.latest(module, node)
            node = binding.value if binding is not None and binding.value is not None else node
        node = receiver_of(node, "read", "read_text", "open") or node
        if isinstance(node, ast.Call) and node.args:
            node = node.args[0]
        path = self.of(module, node, depth + 1)
        return self.program.configs.get(path, UNKNOWN) if isinstance(path, str) else UNKNOWN


def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """Return the expression given for an argument by keyword or by position."""
    for word in call.keywords:
        if word.arg == name:
            return word.value
    if (
        position is not None
        and 0 <= position < len(call.args)
        and not any(isinstance(item, ast.Starred) for item in call.args[: position + 1])
    ):
        return call.args[position]
    return None


def _declare(
    options: dict[str, list[tuple[Module, ast.expr]]], module: Module, call: ast.Call
) -> None:
    names = [
        item.value
        for item in call.args
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    ]
    words: Mapping[str | None, ast.expr] = {word.arg: word.value for word in call.keywords}
    entry = words.get("dest")
    if isinstance(entry, ast.Constant) and isinstance(entry.value, str):
        names = [entry.value]
    else:
        names = [
            next((alias for alias in names if alias.startswith("--")), names[0] if names else "")
        ]
    flag = words.get("action")
    value = words.get("default")
    if value is None:
        value = ast.Constant(
            value=False if isinstance(flag, ast.Constant) and flag.value == "store_true" else None
        )
    for name in names:
        options.setdefault(name.lstrip("-").replace("-", "_"), []).append((module, value))


def _element(value: Any, key: Any) -> Any:
    if isinstance(value, dict) and isinstance(key, str | int):
        return value.get(key, UNKNOWN)
    if (
        isinstance(value, list | tuple | str)
        and isinstance(key, int)
        and -len(value) <= key < len(value)
    ):
        return value[key]
    return UNKNOWN


def _built_in(name: str, entry: list[Any]) -> Any:
    if any(item is UNKNOWN for item in entry) or not entry:
        return UNKNOWN
    try:
        return BUILT_IN[name](*entry)
    except (TypeError, ValueError, OverflowError):
        return UNKNOWN


def _unary(sign: ast.unaryop, value: Any) -> Any:
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(sign, ast.Not):
        return not value
    if isinstance(value, int | float) and isinstance(sign, ast.USub | ast.UAdd):
        return -value if isinstance(sign, ast.USub) else value
    return UNKNOWN


def _arithmetic(sign: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str) and isinstance(sign, ast.Add):
        return left + right if len(left) + len(right) < 10_000 else UNKNOWN
    calculate = ARITHMETIC.get(type(sign))
    if (
        calculate is None
        or not all(isinstance(item, int | float) and abs(item) <= LARGEST for item in (left, right))
        or (isinstance(sign, ast.Pow) and abs(right) > 64)
    ):
        return UNKNOWN
    try:
        return calculate(left, right)
    except (ArithmeticError, ValueError):
        return UNKNOWN


def _agreed(values: list[Any]) -> Any:
    """The value that all are; UNKNOWN where they differ, one is unknown or there is none."""
    first = values[0] if values else UNKNOWN
    alike = all(type(value) is type(first) and value == first for value in values)
    return first if alike else UNKNOWN
