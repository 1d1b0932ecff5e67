"""What several rules ask of a program: its calls by name, what an argument or a name stands for, and which modules make up one job."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainprobe.lint.calls import calls_of as calls_of_functions
from trainprobe.lint.modules import Binding, Class, Function, Module
from trainprobe.lint.program import Program
from trainprobe.lint.values import argument

DEEPEST = 10
MOST_KINDS = 100


class Call(NamedTuple):
    """A call with the full name of what it calls."""

    module: Module
    node: ast.Call
    name: str


class Place(NamedTuple):
    """An expression and the module that it stands in."""

    module: Module
    node: ast.expr


def calls(program: Program, last: str) -> list[Call]:
    """Return all calls under examination whose full name ends in `last`, in the order of the source."""
    found = _by_last_name(program).get(last, [])
    if len(program.examined) == len(program.modules):
        return found
    examined = set(program.examined)
    return [call for call in found if call.module in examined]


def _by_last_name(program: Program) -> dict[str, list[Call]]:
    known: dict[str, list[Call]] | None = program.memory.get("calls by name")
    if known is None:
        known = program.memory["calls by name"] = {}
        for module in program.modules.values():
            with program.tolerance(module):
                for node in module.of(ast.Call):
                    name = program.dotted(module, node.func)
                    if name:
                        known.setdefault(name.rpartition(".")[2], []).append(Call(module, node, name))
                        for kind in kinds(program, name)[1:]:
                            known.setdefault(kind.rpartition(".")[2], []).append(Call(module, node, kind))
        for found in known.values():
            found.sort(key=lambda call: (call.module.path, call.node.lineno, call.node.col_offset))
    return known


def calls_of(program: Program, *names: str) -> list[Call]:
    """Return all calls under examination of exactly these full names; subclasses of the project count as their bases."""
    return [call for name in names for call in calls(program, name.rpartition(".")[2]) if call.name == name]


def kinds(program: Program, name: str) -> list[str]:
    """Return a class's full name and those of its bases, the project's followed."""
    found = [name]
    for one in found:  # which grows meanwhile
        cls = program.class_named(one) if len(found) < MOST_KINDS else None
        if cls is not None:
            found += [base for node in cls.node.bases if (base := program.dotted(cls.module, node)) and base not in found]
    return found


def is_kind(program: Program, name: str, *of: str) -> bool:
    return any(one in of for one in kinds(program, name))


def given(program: Program, module: Module, call: ast.Call, name: str, position: int | None = None) -> Place | None:
    """Return the expression given for an argument, also through `**options` whose dictionary is written in the project."""
    node = argument(call, name, position)
    if node is not None:
        return Place(module, node)
    for word in call.keywords:
        if word.arg is None:
            spread = origin(program, module, word.value)
            if isinstance(spread.node, ast.Dict):
                for key, value in zip(spread.node.keys, spread.node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == name:
                        return Place(spread.module, value)
            elif isinstance(spread.node, ast.Call) and program.dotted(spread.module, spread.node.func) == "dict":
                inner = argument(spread.node, name)
                if inner is not None:
                    return Place(spread.module, inner)
            if isinstance(word.value, ast.Name) and (later := _set_later(module, word.value, name)) is not None:
                return Place(module, later)
    return None


def _set_later(module: Module, options: ast.Name, name: str) -> ast.expr | None:
    """What `options["name"] = …` gives it in the same scope."""
    scope = module.scope_of(options)
    for statement in module.of(ast.Assign):
        for target in statement.targets:
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.value, ast.Name)
                and target.value.id == options.id
                and isinstance(target.slice, ast.Constant)
                and target.slice.value == name
                and module.scope_of(statement) is scope
            ):
                return statement.value
    return None


def is_open(program: Program, module: Module, call: ast.Call) -> bool:
    """Whether a call may be given arguments that cannot be seen: `*args`, or `**options` whose keys are not written in the project."""
    if any(isinstance(one, ast.Starred) for one in call.args):
        return True
    for word in call.keywords:
        if word.arg is None:
            spread = origin(program, module, word.value)
            if isinstance(spread.node, ast.Dict) and None not in spread.node.keys:
                continue
            if not (isinstance(spread.node, ast.Call) and program.dotted(spread.module, spread.node.func) == "dict" and not spread.node.args):
                return True
    return False


def origin(program: Program, module: Module, node: ast.expr, depth: int = 0) -> Place:
    """Follow names and attributes to the expression that they were given; parameters to the one argument that all calls of the project give."""
    if depth > DEEPEST:
        return Place(module, node)
    if isinstance(node, ast.Name):
        binding = program.names.latest(module, node)
        found = None if binding is None else _behind(program, module, binding, node, depth)
        return found or Place(module, node)
    if isinstance(node, ast.Attribute):
        base = program.dotted(module, node.value)
        cls = program.class_named(base.removesuffix("()"))
        if cls is not None:
            values = program.names.attribute_values(cls, node.attr)
            if values:
                return origin(program, values[0][0], values[0][1], depth + 1)
        other = program.modules.get(base)
        if other is not None:
            there = other.bindings[other.tree].get(node.attr, [])
            if there and there[-1].kind == "value" and there[-1].value is not None:
                return origin(program, other, there[-1].value, depth + 1)
    if isinstance(node, ast.NamedExpr):
        return origin(program, module, node.value, depth + 1)
    return Place(module, node)


def _behind(program: Program, module: Module, binding: Binding, node: ast.Name, depth: int) -> Place | None:
    if binding.kind == "value" and binding.value is not None and not isinstance(binding.node, ast.withitem):
        return origin(program, module, binding.value, depth + 1)
    if binding.kind == "import":
        target = program.import_target(module, binding.dotted)
        head, _, last = target.rpartition(".")
        other = program.modules.get(head)
        if other is not None and other is not module:
            there = other.bindings[other.tree].get(last, [])
            if there and there[-1].kind == "value" and there[-1].value is not None:
                return origin(program, other, there[-1].value, depth + 1)
    if binding.kind == "param":
        holder = module.function_of(node)
        default = holder.default_of(node.id) if holder is not None else None
        sites = callers(program, holder) if holder is not None else []
        if holder is not None and len(sites) == 1 and node.id in holder.parameters:
            place = holder.parameters.index(node.id) - (1 if holder.cls is not None else 0)
            told = argument(sites[0].node, node.id, place)
            if told is not None:
                return origin(program, sites[0].module, told, depth + 1)
        if default is not None:
            return origin(program, module, default, depth + 1)
    return None


def callers(program: Program, function: Function) -> list[Call]:
    """Return the calls in the project that run `function`; of a constructor those of its class."""
    return [Call(module, node, function.qualname) for module, node in calls_of_functions(program).get(function, [])]


def imported(program: Program, module: Module) -> Iterator[tuple[ast.stmt, Module]]:
    """Yield the project's modules that a module imports, with the import statement."""
    for statement in (*module.of(ast.Import), *module.of(ast.ImportFrom)):
        for found in module.bindings.get(module.scope_of(statement), {}).values():
            for binding in found:
                if binding.node is statement:
                    other = module_of(program, program.import_target(module, binding.dotted))
                    if other is not None and other is not module:
                        yield statement, other


def module_of(program: Program, dotted: str) -> Module | None:
    """Return the project's module that a dotted name leads into."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        found = program.modules.get(".".join(parts[:count]))
        if found is not None:
            return found
    return None


STARTS = (
    "torch.distributed.init_process_group", "accelerate.Accelerator", "accelerate.PartialState", "deepspeed.init_distributed", "deepspeed.initialize",
    "torch.distributed.device_mesh.init_device_mesh",
)  # fmt: skip
WRAPS = (
    "torch.nn.parallel.DistributedDataParallel", "torch.distributed.fsdp.FullyShardedDataParallel", "torch.distributed.fsdp.fully_shard",
)  # fmt: skip


def job(program: Program, module: Module) -> list[Module]:
    """Return the modules that run in one process with `module`: those that it imports, those that import it, and what these import."""
    known: dict[Module, list[Module]] = program.memory.setdefault("jobs", {})
    if module not in known:
        down, up = _edges(program)
        importers = _closure([module], up)
        known[module] = _closure(importers, down) if len(importers) <= 40 else _closure([module], down)
    return known[module]


def _edges(program: Program) -> tuple[dict[Module, set[Module]], dict[Module, set[Module]]]:
    known: tuple[dict[Module, set[Module]], dict[Module, set[Module]]] | None = program.memory.get("imports")
    if known is None:
        down: dict[Module, set[Module]] = {}
        up: dict[Module, set[Module]] = {}
        for module in program.modules.values():
            for _statement, other in imported(program, module):
                down.setdefault(module, set()).add(other)
                up.setdefault(other, set()).add(module)
        known = program.memory["imports"] = (down, up)
    return known


def _closure(start: list[Module], edges: dict[Module, set[Module]]) -> list[Module]:
    seen, left = dict.fromkeys(start), list(start)
    while left and len(seen) < 400:
        for other in sorted(edges.get(left.pop(), ()), key=lambda one: one.path):
            if other not in seen:
                seen[other] = None
                left.append(other)
    return list(seen)


def among(program: Program, module: Module, *names: str) -> list[Call]:
    """Return the calls of these names in the job of `module`."""
    modules = set(job(program, module))
    known = _by_last_name(program)
    return [call for name in names for call in known.get(name.rpartition(".")[2], ()) if call.name == name and call.module in modules]


def runs_on_ranks(program: Program, module: Module) -> bool:
    """Whether the job of `module` is started as several ranks: it joins a process group or wraps its model for one."""
    known: dict[Module, bool] = program.memory.setdefault("on ranks", {})
    if module not in known:
        known[module] = bool(among(program, module, *STARTS, *WRAPS))
    return known[module]


def class_of_object(program: Program, place: Place) -> Class | None:
    """Return the project's class of an object that an expression makes or names."""
    name = program.dotted(place.module, place.node)
    if not name.endswith("()"):
        behind = origin(program, place.module, place.node)
        name = program.dotted(behind.module, behind.node)
    return program.class_named(name.removesuffix("()")) if name.endswith("()") else None
