"""What a call asks of its function's parameters and of `self`: flags that turn it on or off."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainprobe.lint import flow
from trainprobe.lint.calls import Call, argument_for
from trainprobe.lint.expressions import Expression, has_unknown_arguments, origin
from trainprobe.lint.modules import SCOPES, Function, Module
from trainprobe.lint.program import Program
from trainprobe.lint.values import UNKNOWN

DEEPEST = 6
TURNED = {ast.NotEq: ast.Eq, ast.IsNot: ast.Is, ast.NotIn: ast.In}


class Stated(NamedTuple):
    """A test of which it is known whether it holds, with its text."""

    node: ast.expr
    text: str
    holds: bool


def stated(module: Module, test: ast.expr, *, holds: bool) -> list[Stated]:
    """What a test that holds, or fails, says of its parts."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return stated(module, inner, holds=not holds)
        case ast.BoolOp(op=joint, values=values) if isinstance(joint, ast.And) == holds:
            return [each for value in values for each in stated(module, value, holds=holds)]
        case ast.Compare(left=left, ops=[operator], comparators=others) if type(operator) in TURNED:
            turned = ast.Compare(left, [TURNED[type(operator)]()], others)
            return [Stated(test, ast.unparse(turned), not holds)]
    return [Stated(test, ast.unparse(test), holds)]


def stated_around(module: Module, node: ast.AST) -> list[Stated]:
    """What the conditions around `node` say where it runs, up to its function."""
    found: list[Stated] = []
    child = node
    for up in module.ancestors(node):
        if isinstance(up, SCOPES):
            break
        if isinstance(up, ast.If | ast.IfExp) and child is not up.test:
            inside = child in up.body if isinstance(up.body, list) else child is up.body
            found += stated(module, up.test, holds=inside)
        child = up
    return found


def stated_ahead(program: Program, module: Module, node: ast.AST) -> list[Stated]:
    """What must hold for a function not to be left ahead of `node`: `if world_size != 1: raise`."""
    found: list[Stated] = []
    holder = module.function_of(node)
    for leave in module.of(ast.If) if holder is not None else ():
        if leave.lineno < node.lineno and module.function_of(leave) is holder:  # type: ignore[attr-defined]
            way, branch = flow.way_out(program, module, leave)
            if way and flow.is_left_behind(module, leave, way, node):
                found += stated(module, leave.test, holds=branch != "body")
    return found


class Condition(NamedTuple):
    """A parameter, or `self.x`, and whether it must be true."""

    name: str
    holds: bool


def contradicts(stated: list[Stated], others: list[Stated]) -> bool:
    """Whether one of these tests holds where, among the others, it fails."""
    there = {(other.text, other.holds) for other in others}
    return any((each.text, not each.holds) in there for each in stated)


def conditions_of(program: Program, holder: Function, node: ast.AST) -> frozenset[Condition]:
    """What must hold for `node` to run in its function: tests around it, and leaves before it."""
    module, child = holder.module, node
    found: set[Condition] = set()
    for up in module.ancestors(node):
        if up is holder.node:
            break
        if isinstance(up, ast.If | ast.IfExp | ast.While) and child is not up.test:
            inside = child in up.body if isinstance(up.body, list) else child is up.body
            found |= implied(program, module, up.test, holds=inside)
        elif isinstance(up, ast.BoolOp):
            for value in up.values[: up.values.index(child)]:  # type: ignore[arg-type]
                found |= implied(program, module, value, holds=isinstance(up.op, ast.And))
        child = up
    for leave in ast.walk(holder.node):
        if isinstance(leave, ast.If) and module.function_of(leave) is holder:
            way, branch = flow.way_out(program, module, leave)
            if way and flow.is_left_behind(module, leave, way, node):
                found |= implied(program, module, leave.test, holds=branch != "body")
    return frozenset(found)


def implied(
    program: Program, module: Module, test: ast.expr, *, holds: bool, depth: int = 0
) -> set[Condition]:
    """What follows for parameters if a test holds or fails: through locals and guard functions."""
    found: set[Condition] = set()
    for place, truth in _parts(program, Expression(module, test), holds, depth):
        match place.node:
            case ast.Name(id=name):
                found.add(Condition(name, truth))
            case ast.Attribute(attr=name):
                found.add(Condition(f"self.{name}", truth))
    return found


def _parts(
    program: Program, place: Expression, holds: bool, depth: int
) -> Iterator[tuple[Expression, bool]]:
    """The parameters and attributes of `self` that decide a test alone."""
    module = place.module
    if depth > DEEPEST:
        return
    match place.node:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield from _parts(program, Expression(module, inner), not holds, depth + 1)
        case ast.BoolOp(op=joint, values=values) if isinstance(joint, ast.And) == holds:
            for value in values:
                yield from _parts(program, Expression(module, value), holds, depth + 1)
        case ast.Compare(
            left=inner,
            ops=[ast.Is() | ast.IsNot() as joint],
            comparators=[ast.Constant(value=None)],
        ):
            given = isinstance(joint, ast.IsNot) == holds
            yield from _parts(program, Expression(module, inner), given, depth + 1)
        case ast.Name() as name:
            match program.names.bindings(module, name):
                case [only] if only.kind == "param":
                    yield place, holds
                case [only] if only.kind == "value" and only.value is not None:
                    yield from _parts(program, Expression(module, only.value), holds, depth + 1)
        case ast.Attribute(value=ast.Name(id="self")):
            yield place, holds
        case ast.Call() as call:
            yield from _asked(program, module, call, holds, depth + 1)


def _asked(
    program: Program, module: Module, call: ast.Call, holds: bool, depth: int
) -> Iterator[tuple[Expression, bool]]:
    """What a guard function of one return asks of its arguments, or of the same `self`."""
    guard = program.called(module, call)
    if guard is None or len(guard.returns) != 1 or guard.returns[0].value is None:
        return
    answer = Expression(guard.module, guard.returns[0].value)
    for place, truth in _parts(program, answer, holds, depth):
        if isinstance(place.node, ast.Name):
            entry = argument_for(call, guard, place.node.id)
            if entry is not None:
                yield from _parts(program, Expression(module, entry), truth, depth)
        elif _is_own(call):
            yield place, truth


def passed_on(
    program: Program,
    module: Module,
    call: ast.Call,
    function: Function,
    conditions: frozenset[Condition],
    holder: Function | None,
) -> frozenset[Condition] | None:
    """The conditions of a function in terms of the one that calls it; None where they fail."""
    found: set[Condition] = set()
    for condition in conditions:
        given = _given(program, module, call, function, condition.name)
        if given is None:
            found |= {condition} if condition.name.startswith("self.") and _is_own(call) else set()
            continue
        value = program.value(*given)
        asked = stated(given.module, given.node, holds=condition.holds)
        if given.module is module and contradicts(asked, stated_around(module, call)):
            return None
        if value is not UNKNOWN:
            if bool(value) != condition.holds:
                return None
        elif holder is not None and given.module is module:
            found |= implied(program, module, given.node, holds=condition.holds)
    return frozenset(found)


def is_turned_off(program: Program, function: Function, node: ast.AST, site: Call) -> bool:
    """Whether a call of `function` gives its parameters values with which `node` does not run, be
    it by their defaults.
    """
    asked = conditions_of(program, function, node)
    return passed_on(program, site.module, site.node, function, asked, None) is None


def is_undecided(
    program: Program,
    module: Module,
    call: ast.Call,
    function: Function,
    conditions: frozenset[Condition],
    holder: Function | None,
) -> bool:
    """Whether a call gives for one of the conditions a value that is not known, and that no
    condition of `holder` stands for.
    """
    for condition in conditions:
        given = _given(program, module, call, function, condition.name)
        if given is None or program.value(*given) is not UNKNOWN:
            continue
        asked = (
            implied(program, module, given.node, holds=condition.holds)
            if holder is not None and given.module is module
            else set()
        )
        if not asked:
            return True
    return False


def _given(
    program: Program, module: Module, call: ast.Call, function: Function, name: str
) -> Expression | None:
    """What a call, or the call that made the object, gives a parameter or an attribute."""
    if not name.startswith("self."):
        entry = argument_for(call, function, name)
        if entry is not None:
            return Expression(module, entry)
        unseen = has_unknown_arguments(program, Call(module, call, ""))
        default = None if unseen else function.default_of(name)
        return Expression(function.module, default) if default is not None else None
    if function.cls is None or _is_own(call):
        return None
    making = Expression(module, call)
    if function.name != "__init__":
        if not isinstance(call.func, ast.Attribute):
            return None
        making = origin(program, module, call.func.value)
    values = program.names.attribute_values(function.cls, name.removeprefix("self."))
    made = program.names.method(function.cls, "__init__")
    match values:
        case [(_, ast.Name(id=parameter))] if made is not None and isinstance(
            making.node, ast.Call
        ):
            return _given_to(program, making.module, making.node, made, parameter)
        case [(where, ast.Constant() as value)]:
            return Expression(where, value)
    return None


def _given_to(
    program: Program, module: Module, call: ast.Call, made: Function, parameter: str
) -> Expression | None:
    """What a constructing call gives a constructor, also through that of a subclass."""
    own = program.called(module, call)
    if own is None or own is made:
        return _given(program, module, call, made, parameter) if own is made else None
    for inner in own.calls:
        if program.called(own.module, inner) is made:
            entry = _given(program, own.module, inner, made, parameter)
            match entry:
                case Expression(node=ast.Name(id=name)) if name in own.parameters:
                    return _given(program, module, call, own, name)
            return entry
    return None


def _is_own(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id="self")):
            return True
    return False
