"""Full names of expressions, through aliases, imports, assignments, `self.x` and re-exports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainprobe.lint.modules import Binding, Class, Function, Module, Scope

if TYPE_CHECKING:
    from trainprobe.lint.program import Program

DEEPEST = 12
LONGEST = 300
MOST_BASES = 50
MOST_OPEN = 40
"""Names followed inside each other; each needs up to a dozen frames of Python's stack."""
SAME = {
    "torch.distributed.distributed_c10d.": "torch.distributed.",
    "torch.nn.parallel.distributed.": "torch.nn.parallel.",
    "torch.utils.data.dataloader.": "torch.utils.data.",
    "torch.utils.data.distributed.": "torch.utils.data.",
    "torch.distributed.fsdp.fully_sharded_data_parallel.": "torch.distributed.fsdp.",
    "torch.multiprocessing.spawn.": "torch.multiprocessing.",
    "pytorch_lightning.": "lightning.",
    "lightning.pytorch.": "lightning.",
    "accelerate.accelerator.": "accelerate.",
    "transformers.trainer.": "transformers.",
    "datasets.arrow_dataset.": "datasets.",
    "datasets.load.": "datasets.",
}
"""Modules whose names are also found in the package above them."""
LONG_FORMS = tuple(SAME)


class Names:
    """Dotted names of expressions of one program. Answers are remembered by node."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[ast.AST, str] = {}
        self._definitions: dict[str, Function | Class | None] = {}
        self._within = 0
        self._open: set[ast.AST] = set()
        self._nameless: dict[ast.AST, int] = {}
        self._cuts = 0

    def dotted(self, module: Module, node: ast.AST, depth: int = 0) -> str:
        """Return the full name of an expression, "" where it has none.

        `dist.barrier` is "torch.distributed.barrier" under any import. What a call returns ends in
        "()": `acc.gather` with
        `acc = Accelerator()` is "accelerate.Accelerator().gather"; an element of it ends in "[]". A
        name whose origin is unknown (a parameter without annotation, a loop variable) starts with
        "~": "~trainer.save_model". Methods of the project's own classes are
        "pkg.mod.Class().method". A name that leads back to itself has no origin beyond the circle.
        """
        known = self._known.get(node)
        if known is not None:
            return known
        if (
            depth > DEEPEST
            or node in self._open
            or len(self._open) >= MOST_OPEN
            or self._nameless.get(node, DEEPEST + 1) <= depth
        ):
            self._cuts += 1
            return ""
        cuts = self._cuts
        self._open.add(node)
        try:
            answer = self._of(module, node, depth)
        finally:
            self._open.discard(node)
        if len(answer) > LONGEST:
            answer = ""
        if answer.startswith(LONG_FORMS):
            for long, short in SAME.items():
                if answer.startswith(long):
                    answer = short + answer[len(long) :]
        if answer or not self._open or self._cuts == cuts:
            self._known[node] = answer
        else:
            # within this question; otherwise a circle with branches is walked in all combinations
            self._nameless[node] = depth
        if not self._open:
            self._nameless.clear()
        return answer

    def bindings(self, module: Module, node: ast.Name) -> list[Binding]:
        """All places that bind this name, in the nearest scope that has any, in source order."""
        return self.lookup(module, node.id, node)[1]

    def lookup(self, module: Module, name: str, at: ast.AST) -> tuple[Scope, list[Binding]]:
        """The scope that holds `name` as seen from `at`, and its bindings there."""
        bindings = module.bindings
        scope = module.scope_of(at)
        found = bindings[scope].get(name)
        while not found:
            if scope is module.tree:
                return scope, []
            scope = module.scope_above[scope]
            if scope.__class__ is not ast.ClassDef:
                found = bindings[scope].get(name)
        return scope, found

    def latest(self, module: Module, node: ast.Name) -> Binding | None:
        """The binding that most likely holds at `node`: the last before it, else an outer one's."""
        scope, found = self.lookup(module, node.id, node)
        if not found:
            return None
        if scope is module.scope_of(node):
            line = node.lineno
            before = [
                item
                for item in found
                if (item.line < line and not _ends_behind(item.node, line)) or item.kind == "param"
            ]
            return before[-1] if before else found[0]
        return found[-1] if found[-1].kind != "other" else found[0]

    def attribute_values(self, cls: Class, name: str) -> list[tuple[Module, ast.expr]]:
        """What `self.name` is assigned in a class or its project bases."""
        holder = next((item for item in self._lineage(cls) if name in item.attributes), None)
        return (
            [(holder.module, value) for value in holder.attributes[name]]
            if holder is not None
            else []
        )

    def method(self, cls: Class, name: str) -> Function | None:
        """The method of a class or of its project bases."""
        return next(
            (item.methods[name] for item in self._lineage(cls) if name in item.methods), None
        )

    def _lineage(self, cls: Class) -> Iterator[Class]:
        """A class and its project bases, depth first, each once."""
        visited, left = {cls}, [cls]
        while left:
            item = left.pop()
            yield item
            for base in reversed(item.node.bases):
                above = self.definition(self.dotted(item.module, base))
                if isinstance(above, Class) and above not in visited and len(visited) < MOST_BASES:
                    visited.add(above)
                    left.append(above)

    def definition(self, dotted: str) -> Function | Class | None:
        """The project's function or class of a dotted name; re-exports followed."""
        if dotted in self._definitions:
            return self._definitions[dotted]
        # `from .a import a` beside `a = a.a` grows without end
        if self._within > DEEPEST or len(dotted) > LONGEST:
            return None
        self._definitions[dotted] = None  # ends circles
        self._within += 1
        try:
            self._definitions[dotted] = self._definition(dotted)
        finally:
            self._within -= 1
        return self._definitions[dotted]

    def _definition(self, dotted: str) -> Function | Class | None:
        if not dotted or dotted[0] == "~" or "[" in dotted:
            return None
        module, rest = self._module_part(dotted)
        if module is None or not rest:
            return None
        if "()" in rest:
            cut = rest.index("()")
            made = self.definition(f"{module.name}.{rest[:cut]}")
            name = rest[cut + 3 :] if rest[cut + 2 :] else "__call__"
            return (
                self.method(made, name)
                if isinstance(made, Class) and name and "." not in name and "(" not in name
                else None
            )
        if rest in module.functions:
            return module.functions[rest]
        if rest in module.classes:
            return module.classes[rest]
        head, _, tail = rest.partition(".")
        if tail and head in module.classes and "." not in tail:
            return self.method(module.classes[head], tail)
        again = self._exported(module, rest)
        return self.definition(again) if again and again != dotted else None

    def _module_part(self, dotted: str) -> tuple[Module | None, str]:
        parts = dotted.split(".")
        for count in range(len(parts), 0, -1):
            module = self.program.modules.get(".".join(parts[:count]))
            if module is not None:
                return module, ".".join(parts[count:])
        return None, dotted

    def _exported(self, module: Module, rest: str) -> str:
        """The name behind `rest` of a module that only imports or assigns it."""
        head, _, tail = rest.partition(".")
        ending = f".{tail}" if tail else ""
        call = ""
        if head.endswith("()"):
            head, call = head[:-2], "()"
        for binding in reversed(module.bindings[module.tree].get(head, [])):
            if binding.kind == "import":
                return self.program.import_target(module, binding.dotted) + call + ending
            if binding.kind == "value" and binding.value is not None:
                behind = self.dotted(module, binding.value, 4)
                if behind and not behind.startswith("~"):
                    return behind + call + ending
        for star in module.star_imports:
            other = self.program.modules.get(self.program.import_target(module, star))
            if other is not None and other is not module and (head in other.bindings[other.tree]):
                return f"{other.name}.{rest}"
        return ""

    def canonical(self, dotted: str) -> str:
        """Follow the project's re-exports: `lib.dist.barrier` is "torch.distributed.barrier"."""
        for _ in range(6):
            module, rest = self._module_part(dotted)
            if module is None or not rest:
                break
            head = rest.partition(".")[0].removesuffix("()")
            if head in module.functions or head in module.classes:
                break
            again = self._exported(module, rest)
            if not again or again == dotted:
                break
            dotted = again
        return dotted

    def _of(self, module: Module, node: ast.AST, depth: int) -> str:
        if isinstance(node, ast.Name):
            return self._name(module, node, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute(module, node, depth)
        if isinstance(node, ast.Call):
            return self._call(module, node, depth)
        if isinstance(node, ast.Await | ast.Starred | ast.NamedExpr):
            return self.dotted(module, node.value, depth + 1)
        if isinstance(node, ast.Subscript):
            base = self.dotted(module, node.value, depth + 1)
            return f"{base}[]" if base else ""
        if isinstance(node, ast.BoolOp | ast.IfExp):
            options = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
            return next(
                (
                    name
                    for option in options
                    if (name := self.dotted(module, option, depth + 1)) and name[0] != "~"
                ),
                "",
            )
        return ""

    def _call(self, module: Module, node: ast.Call, depth: int) -> str:
        called = self.dotted(module, node.func, depth + 1)
        if called in {"functools.partial", "functools.wraps"} and node.args:
            return self.dotted(module, node.args[0], depth + 1)
        match called, node.args:
            case "getattr", [holder, ast.Constant(value=str(name)), *_]:
                return f"{self.dotted(module, holder, depth + 1)}.{name}"
            case _, [ast.Constant(value=name), *_] if called.endswith("importlib.import_module"):
                return str(name)
        if called == "super" and (cls := module.class_of(node)) is not None:
            base = self.dotted(module, cls.node.bases[0], depth + 1) if cls.node.bases else ""
            return f"{base}()" if base else ""
        return f"{called}()" if called else ""

    def _name(self, module: Module, node: ast.Name, depth: int) -> str:  # noqa: PLR0911, PLR0912 - one branch per kind of binding
        scope, found = self.lookup(module, node.id, node)
        if not found:
            for star in module.star_imports:
                other = self.program.modules.get(self.program.import_target(module, star))
                if other is not None and node.id in other.bindings[other.tree]:
                    return self.canonical(f"{other.name}.{node.id}")
                if other is None and star.split(".")[0] in {"torch", "accelerate", "transformers"}:
                    return f"{star}.{node.id}"
            return node.id if node.id in BUILT_IN else f"~{node.id}"
        binding = self.latest(module, node)
        assert binding is not None
        if binding.kind == "import":
            return self.canonical(self.program.import_target(module, binding.dotted))
        if binding.kind == "def":
            return f"{module.name}.{module.function_of_node[binding.node].qualname}"
        if binding.kind == "class":
            return module.class_of_node[binding.node].full_name
        if binding.kind == "param":
            holder = module.function_of_node.get(scope)
            cls = holder.cls if holder is not None and not _is_static(holder) else None
            if holder is not None and cls is not None and holder.parameters[:1] == [node.id]:
                return f"{cls.full_name}()"
            if binding.value is not None:
                named = self._annotation(module, binding.value, depth)
                if named:
                    return f"{named}()"
            return f"~{node.id}"
        if binding.value is not None and binding.kind in {"value", "unpack"}:
            behind = self.dotted(module, binding.value, depth + 1)
            if behind and binding.kind == "unpack":
                behind = f"{behind}[]"
            if behind and behind[0] != "~":
                return behind
        if (
            binding.kind == "other"
            and isinstance(binding.value, ast.expr)
            and (named := self._annotation(module, binding.value, depth))
        ):
            return f"{named}()"
        # `try: import x / except ImportError: x = None`
        imported = next((item for item in found if item.kind == "import"), None)
        if imported is not None:
            return self.canonical(self.program.import_target(module, imported.dotted))
        return f"~{node.id}"

    def _annotation(self, module: Module, node: ast.expr, depth: int) -> str:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.replace(".", "").isidentifier()
        ):
            head, _, tail = node.value.partition(".")
            binding = module.bindings[module.tree].get(head, [])
            if binding and binding[-1].kind == "import":
                return self.canonical(self.program.import_target(module, binding[-1].dotted)) + (
                    f".{tail}" if tail else ""
                )
            return f"{module.name}.{head}" if head in module.classes else ""
        if isinstance(node, ast.BinOp):  # `Accelerator | None`
            return self._annotation(module, node.left, depth)
        if (
            isinstance(node, ast.Subscript)
            and self.dotted(module, node.value, depth + 1) == "typing.Optional"
        ):
            return self._annotation(module, node.slice, depth)
        named = (
            self.dotted(module, node, depth + 1)
            if isinstance(node, ast.Name | ast.Attribute)
            else ""
        )
        return "" if named.startswith("~") or named in BUILT_IN or named == "typing.Any" else named

    def _returned(self, function: Function, depth: int) -> Class | None:
        """The project's class of which a function says that it returns an object."""
        if function.node.returns is None:
            return None
        made = self.definition(self._annotation(function.module, function.node.returns, depth))
        return made if isinstance(made, Class) else None

    def _attribute(self, module: Module, node: ast.Attribute, depth: int) -> str:
        base = self.dotted(module, node.value, depth + 1)
        if not base:
            return ""
        if base.endswith("()"):
            cls = self.definition(base[:-2])
            if isinstance(cls, Function) and (made := self._returned(cls, depth)) is not None:
                cls, base = made, f"{made.full_name}()"
            if isinstance(cls, Class) and self.method(cls, node.attr) is None:
                for where, value in self.attribute_values(cls, node.attr):
                    behind = self.dotted(where, value, depth + 1)
                    if behind and behind[0] != "~":
                        return behind
        return self.canonical(f"{base}.{node.attr}")


def _ends_behind(node: ast.AST, line: int) -> bool:
    """Whether an assignment over several lines is not done yet: `x = f(`, `x)`."""
    return isinstance(node, ast.Assign) and (node.end_lineno or 0) >= line


def _is_static(function: Function) -> bool:
    return any(
        isinstance(decorator, ast.Name) and decorator.id == "staticmethod"
        for decorator in function.node.decorator_list
    )


BUILT_IN = set(
    """
    print open len range int float str bool list dict set tuple getattr setattr hasattr super exit
    quit min max sum abs sorted enumerate zip map filter isinstance type object Exception round any
    all next iter bytes None True False __name__ __file__ BaseException
    """.split()
)
