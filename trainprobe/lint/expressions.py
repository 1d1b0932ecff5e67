"""What an expression stands for, through names, attributes, arguments and `**options`."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from trainprobe.lint.calls import Call, argument_for, callers
from trainprobe.lint.modules import Binding, Class, Function, Module
from trainprobe.lint.program import Program
from trainprobe.lint.values import argument

DEEPEST = 10


class Expression(NamedTuple):
    """An expression and the module that it stands in."""

    module: Module
    node: ast.expr


def resolved_argument(
    program: Program, site: Call, name: str, position: int | None = None
) -> Expression | None:
    """The expression given for an argument, also through `**options` with a known dictionary."""
    module, call = site.module, site.node
    node = argument(call, name, position)
    if node is not None:
        return Expression(module, node)
    for keyword in call.keywords:
        if keyword.arg is None:
            spread = origin(program, module, keyword.value)
            if isinstance(spread.node, ast.Dict):
                for key, value in zip(spread.node.keys, spread.node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == name:
                        return Expression(spread.module, value)
            elif (
                isinstance(spread.node, ast.Call)
                and program.dotted(spread.module, spread.node.func) == "dict"
            ):
                inner = argument(spread.node, name)
                if inner is not None:
                    return Expression(spread.module, inner)
            if (
                isinstance(keyword.value, ast.Name)
                and (later := _set_later(module, keyword.value, name)) is not None
            ):
                return Expression(module, later)
    return None


def argument_value(
    program: Program, site: Call, name: str, position: int | None = None, default: Any = None
) -> Any:
    """Return the constant given for an argument, UNKNOWN, or `default` where none is given."""
    place = resolved_argument(program, site, name, position)
    return default if place is None else program.value(place.module, place.node)


def _set_later(module: Module, options: ast.Name, name: str) -> ast.expr | None:
    """What `options["name"] = …` gives it in the same scope."""
    scope = module.scope_of(options)
    for statement in module.of(ast.Assign):
        for target in statement.targets:
            match target:
                case ast.Subscript(value=ast.Name(id=holder), slice=ast.Constant(value=key)):
                    if (holder, key) == (options.id, name) and module.scope_of(statement) is scope:
                        return statement.value
    return None


def has_unknown_arguments(program: Program, site: Call) -> bool:
    """Whether a call may be given unseen arguments: `*args`, or `**options` of unknown keys."""
    module, call = site.module, site.node
    if any(isinstance(item, ast.Starred) for item in call.args):
        return True
    for keyword in call.keywords:
        if keyword.arg is None:
            spread = origin(program, module, keyword.value)
            if isinstance(spread.node, ast.Dict) and None not in spread.node.keys:
                continue
            if not (
                isinstance(spread.node, ast.Call)
                and program.dotted(spread.module, spread.node.func) == "dict"
                and not spread.node.args
            ):
                return True
    return False


def origin(program: Program, module: Module, node: ast.expr, depth: int = 0) -> Expression:
    """Follow names, attributes and parameters with one known argument to their expression."""
    if depth > DEEPEST:
        return Expression(module, node)
    if isinstance(node, ast.Name):
        binding = program.names.latest(module, node)
        found = None if binding is None else _behind(program, module, binding, node, depth)
        return found or Expression(module, node)
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
    return Expression(module, node)


def _behind(
    program: Program, module: Module, binding: Binding, node: ast.Name, depth: int
) -> Expression | None:
    if (
        binding.kind == "value"
        and binding.value is not None
        and not isinstance(binding.node, ast.withitem)
    ):
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
            item = argument(sites[0].node, node.id, place)
            if item is not None:
                return origin(program, sites[0].module, item, depth + 1)
        if default is not None and (
            not sites or any(_leaves_off(program, site, holder, node.id) for site in sites)
        ):
            return origin(program, module, default, depth + 1)
    return None


def _leaves_off(program: Program, site: Call, function: Function | None, parameter: str) -> bool:
    """Whether a call may leave a parameter to its default."""
    return (
        function is None
        or argument_for(site.node, function, parameter) is None
        or has_unknown_arguments(program, site)
    )


def class_of_object(program: Program, place: Expression) -> Class | None:
    """Return the project's class of an object that an expression makes or names."""
    name = program.dotted(place.module, place.node)
    if not name.endswith("()"):
        behind = origin(program, place.module, place.node)
        name = program.dotted(behind.module, behind.node)
    return program.class_named(name.removesuffix("()")) if name.endswith("()") else None
