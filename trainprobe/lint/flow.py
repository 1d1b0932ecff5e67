"""The rank conditions under which a statement runs: around it, and early exits before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from trainprobe.lint import ranks
from trainprobe.lint.modules import FUNCTIONS, SCOPES, Function, Module
from trainprobe.lint.program import Program, remembered
from trainprobe.lint.ranks import RankTest

LOOPS = (ast.For, ast.AsyncFor, ast.While)
EXITS = {"sys.exit", "os._exit", "exit", "quit"}


@dataclass(frozen=True)
class Guard:
    """Only ranks for which `test` holds get here: by a condition, an early exit or a decorator."""

    test: RankTest
    how: Literal["inside", "return", "raise", "exit", "continue", "break", "decorator"]
    line: int
    node: ast.AST
    branch: Literal["body", "orelse", ""] = ""
    """For a condition around: the branch that holds the node. For a leave: the branch that
    leaves.
    """
    partly: bool = False
    """For a leave: whether those for whom `test` does not hold may come here too."""


def guards(program: Program, module: Module, node: ast.AST) -> list[Guard]:
    """Return the rank conditions under which `node` runs within its function, the nearest first."""
    found: list[Guard] = []
    child: ast.AST = node
    up = module.parents.get(node)
    while up is not None:
        if isinstance(up, ast.If | ast.While | ast.IfExp) and child is not up.test:
            test = ranks.test(program, module, up.test)
            if test is not None:
                inside = child in up.body if isinstance(up.body, list) else child is up.body
                found.append(
                    Guard(
                        test if inside else test.turned(),
                        "inside",
                        up.lineno,
                        up,
                        "body" if inside else "orelse",
                    )
                )
        elif isinstance(up, ast.BoolOp) and child in up.values[1:]:
            for value in up.values[: up.values.index(child)]:
                test = ranks.test(program, module, value)
                if test is not None:
                    found.append(
                        Guard(
                            test if isinstance(up.op, ast.And) else test.turned(),
                            "inside",
                            up.lineno,
                            up,
                            "body",
                        )
                    )
        if isinstance(up, SCOPES):
            break
        child, up = up, module.parents.get(up)
    found += [
        leave
        for leave in leaves(program, module).get(up or module.tree, [])
        if is_left_behind(module, leave.node, leave.how, node)
    ]
    holder = module.function_of_node.get(up) if up is not None else None
    if holder is not None:
        for decorator in holder.node.decorator_list:
            decorated = decorated_by(program, module, decorator)
            if decorated is not None:
                found.append(Guard(decorated, "decorator", decorator.lineno, decorator))
    return found


@remembered
def leaves(program: Program, module: Module) -> dict[ast.AST, list[Guard]]:
    """The conditions that make some ranks leave a function, module or loop early."""
    made: dict[ast.AST, list[Guard]] = {}
    for node in module.of(ast.If):
        way, branch = way_out(program, module, node)
        test = ranks.test(program, module, node.test) if way else None
        if test is None:
            continue
        stay = test.turned() if branch == "body" else test
        made.setdefault(module.scope_of(node), []).append(
            Guard(stay, way, node.lineno, node, branch)  # type: ignore[arg-type]
        )
    return made


@remembered
def leaves_in_part(program: Program, module: Module) -> dict[ast.AST, list[Guard]]:
    """The conditions below one on the rank that may make those ranks leave a function or loop."""
    made: dict[ast.AST, list[Guard]] = {}
    for node in module.of(ast.If):
        way, branch = way_out(program, module, node)
        if way not in {"return", "continue", "break"} or ranks.test(program, module, node.test):
            continue
        # of all that leaves a loop, only conditions in that loop
        within = SCOPES if way == "return" else (*SCOPES, *LOOPS)
        here = ranks.condition_around(program, module, node, within=within)
        if here is not None:
            guard = Guard(here.turned(), way, node.lineno, node, branch, partly=True)  # type: ignore[arg-type]
            made.setdefault(module.scope_of(node), []).append(guard)
    return made


def way_out(program: Program, module: Module, node: ast.If) -> tuple[str, str]:
    """How one branch of a condition leaves ("return"), and which ("body"); "" for none or both."""
    ways = [
        (_left_by(program, module, branch), name)
        for branch, name in ((node.body, "body"), (node.orelse, "orelse"))
    ]
    found = [item for item in ways if item[0]]
    return found[0] if len(found) == 1 else ("", "")


def _left_by(program: Program, module: Module, branch: list[ast.stmt]) -> str:
    for statement in branch:
        match statement:
            case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
                return type(statement).__name__.lower()
            case ast.Expr(value=ast.Call(func=called)) if program.dotted(module, called) in EXITS:
                return "exit"
            case ast.With(body=body) | ast.AsyncWith(body=body):
                if way := _left_by(program, module, body):
                    return way
    return ""


def is_left_behind(module: Module, leave: ast.AST, how: str, node: ast.AST) -> bool:
    """Whether the ranks that leave at `leave` would have come to `node`, now or in the loop's next
    turn.
    """
    around = module.ancestors(leave)
    ancestors = set(module.ancestors(node))
    loop = next((item for item in around if isinstance(item, LOOPS)), None)
    if not before(module, leave, node):
        return how == "break" and _comes_again(module, loop, leave, node)
    if how in {"continue", "break"}:
        return loop is not None and loop in ancestors
    # one that is caught in this function is no leaving
    return how != "raise" or not any(tried.handlers for tried in tried_in(module, leave))


def tried_in(module: Module, node: ast.AST) -> Iterator[ast.Try]:
    """Yield the `try` statements of its function that it runs in the body of, the nearest first."""
    for up, child in _with_children(module, node):
        if isinstance(up, SCOPES):
            return
        if isinstance(up, ast.Try) and child in up.body:
            yield up


def _comes_again(module: Module, loop: ast.AST | None, leave: ast.AST, node: ast.AST) -> bool:
    """Whether `node` stands in the body of the loop that is left, ahead of what leaves it."""
    if not isinstance(loop, LOOPS) or module.scope_of(node) is not module.scope_of(leave):
        return False
    child = node
    for up in module.ancestors(node):
        if up is loop:
            return child in loop.body and before(module, node, leave)
        child = up
    return False


def before(module: Module, first: ast.AST, second: ast.AST) -> bool:
    """Whether `first` ends before `second` begins in one function, on all branches."""
    end = (getattr(first, "end_lineno", 0), getattr(first, "end_col_offset", 0))
    begin = (getattr(second, "lineno", 0), getattr(second, "col_offset", 0))
    if end > begin or module.scope_of(first) is not module.scope_of(second):
        return False
    above = {id(item): child for item, child in _with_children(module, first)}
    for up, child in _with_children(module, second):
        if id(up) in above:
            other = above[id(up)]
            if isinstance(up, ast.If):
                return not (other in up.body and child in up.orelse)
            if isinstance(up, ast.Try):
                return not (
                    child in up.handlers
                    or (other in up.handlers and child not in up.finalbody and child in up.orelse)
                )
            return True
    return True


def _with_children(module: Module, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    child: ast.AST = node
    up = module.parents.get(node)
    while up is not None:
        yield up, child
        child, up = up, module.parents.get(up)


def decorated_by(program: Program, module: Module, decorator: ast.expr) -> RankTest | None:
    """The condition that a decorator such as `rank_zero_only` puts before its function."""
    name = program.dotted(module, decorator)
    function = program.function(name.removesuffix("()"))
    if function is not None:
        own = _decorates(program, function)
        if own is not None:
            return own
    if ranks.RANK_ZERO_DECORATORS.fullmatch(name) and (
        function is None or not function.returns or not function.calls
    ):
        return RankTest("main", f"@{name.removesuffix('()').rpartition('.')[2].lstrip('~')}")
    return None


def _decorates(program: Program, function: Function) -> RankTest | None:
    """A decorator of the project: it calls its parameter under a rank condition."""
    memory: dict[Function, RankTest | None] = program.memory.setdefault("decorates", {})
    if function not in memory:
        memory[function] = None
        parameter = set(function.parameters)
        for inner in ast.walk(function.node):
            if isinstance(inner, FUNCTIONS) and inner is not function.node:
                own = function.module.function_of_node[inner]
                passed = [
                    call
                    for call in own.calls
                    if isinstance(call.func, ast.Name) and call.func.id in parameter
                ]
                tests = [
                    guard.test
                    for call in passed
                    for guard in guards(program, function.module, call)
                ]
                if tests and len(passed) == 1:
                    memory[function] = RankTest(tests[0].polarity, f"@{function.name}")
    return memory[function]
