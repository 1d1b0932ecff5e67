"""A collective that only some ranks reach, by a rank condition or an earlier exit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainprobe.lint import ranks
from trainprobe.lint.alone import is_alone
from trainprobe.lint.calls import callers
from trainprobe.lint.collectives import collective_of
from trainprobe.lint.conditions import (
    conditions_of,
    contradicts,
    is_undecided,
    passed_on,
    stated,
    stated_around,
)
from trainprobe.lint.fixing import insert_line
from trainprobe.lint.flow import (
    Guard,
    before,
    decorated_by,
    guards,
    is_left_behind,
    leaves,
    leaves_in_part,
)
from trainprobe.lint.model import Edit, Finding, Rule
from trainprobe.lint.modules import Function, Module, last_name
from trainprobe.lint.program import Program, remembered
from trainprobe.lint.reached import ALONE, ReachedCollective, reached_by_call
from trainprobe.lint.rewrites import stands_alone_first, taken_out
from trainprobe.lint.values import argument

RULE = Rule(
    id="rank-conditional-collective",
    cause="rank-conditional-collective",
    title="a collective that only some ranks reach",
    why=(
        "A collective completes only when every rank of its group has called it. The ranks that"
        " call it wait for the others until the timeout."
    ),
    confidence=0.95,
    plain_hint=0.48,  # where ranks leave early: mostly for what is meant for one process
    also=("collective-order-mismatch",),
)

ORDER_WHY = (
    "Ranks that call different collectives at the same point exchange mismatched data or wait for"
    " each other until the timeout."
)
ORDER_FIX = (
    "Call the same collectives in the same order on all ranks; let only their arguments differ."
)
LEAVES = {
    "return": "returned",
    "raise": "raised",
    "exit": "exited",
    "continue": "continued with the next iteration",
    "break": "left the loop",
}
HINT = 0.45
"""The confidence where what is seen does not decide whether the call is made, or made by all."""
PARTNERS = {"__enter__": "__exit__", "__exit__": "__enter__"}
WHO = {
    "main": "only the main rank reaches it",
    "others": "the main rank never reaches it",
    "some": "only some ranks reach it",
}


def find(program: Program) -> Iterator[Finding]:
    """Yield one finding per unpaired call that reaches a collective under a rank condition."""
    for module in program.examined:
        for scope in _suspects(program, module):
            yield from _in_scope(program, module, scope)


def _suspects(program: Program, module: Module) -> list[ast.AST]:
    """Functions, and the module itself, that hold a rank condition."""
    found: dict[ast.AST, None] = dict.fromkeys(
        [*leaves(program, module), *leaves_in_part(program, module)]
    )
    for kind in (ast.If, ast.IfExp, ast.While):
        for node in module.of(kind):
            if ranks.test(program, module, node.test) is not None:  # type: ignore[attr-defined]
                found[module.scope_of(node)] = None
    for node in module.of(ast.BoolOp):
        if any(isinstance(value, ast.Call) for value in node.values[1:]) and any(
            ranks.test(program, module, value) for value in node.values[:-1]
        ):
            found[module.scope_of(node)] = None
    for function in module.functions.values():
        if any(
            decorated_by(program, module, decorator) for decorator in function.node.decorator_list
        ):
            found[function.node] = None
    return list(found)


@dataclass(frozen=True)
class Met:
    """A call that leads to collectives, and the rank conditions around it."""

    call: ast.Call
    bears: tuple[ReachedCollective, ...]
    around: list[Guard]


def _in_scope(program: Program, module: Module, scope: ast.AST) -> Iterator[Finding]:
    holder = module.function_of_node.get(scope)
    calls = holder.calls if holder is not None else module.top_calls if scope is module.tree else []
    met = _met(program, module, scope, calls)
    everywhere = met + _met_by_partner(program, holder)
    # who left is missing from all that follows: the surest tells it
    left: dict[ast.AST, Finding] = {}
    for place in met:
        if is_alone(program, module, place.call):
            continue
        guard = next(
            (
                each
                for each in place.around
                if _counts(each)
                and not _is_excluded(program, module, place, each)
                and not _is_group_of_others(module, place, each, met)
            ),
            None,
        )
        alone = [
            each
            for each in place.bears
            if guard is not None and not _is_met(each, guard, place.call, everywhere)
        ]
        if guard is not None and alone and not _by_callback(program, module, alone, guard):
            surest = max(alone, key=lambda each: (each.is_certain, each.collective.sure))
            if surest.collective.is_made_up_for and _meets_next(module, place, met):
                surest = replace(surest, collective=replace(surest.collective, sure=0.6))
            found = _finding(program, module, place, surest, guard, met)
            unsure = (
                not surest.is_certain
                or _is_served(module, place, surest, guard)
                or _is_met_elsewhere(program, module, surest, guard)
                or _fails(guard)
                or _is_never_asked(program, holder, place.call, guard)
            )
            if unsure:
                found = replace(found, confidence=min(found.confidence, HINT))
            elif guard.how in LEAVES and not _is_left_out(surest, guard):
                found = replace(found, confidence=min(found.confidence, RULE.plain_hint))
            if not guard.partly:
                yield found
            elif guard.node not in left or found.confidence > left[guard.node].confidence:
                left[guard.node] = found
    yield from left.values()
    yield from _swapped(module, met)


def _is_left_out(reached: ReachedCollective, guard: Guard) -> bool:
    """Whether some ranks leave out the call itself, of a pass or by a further condition that only
    they come to: not the rest of a program that is meant for one process.
    """
    if guard.how in ("continue", "break"):
        return len(reached.chain) <= 1  # a function that wraps it
    return guard.partly and not reached.chain


def _meets_next(module: Module, place: Met, met: list[Met]) -> bool:
    """Whether all ranks meet in something else after a call, ahead of the next step."""
    return any(
        not there.around
        and before(module, place.call, there.call)
        and any(
            each.collective.kind in {"barrier", "collective"} and not each.collective.group
            for each in there.bears
        )
        for there in met
    )


def _swapped(module: Module, met: list[Met]) -> Iterator[Finding]:
    """Yield conditions whose two branches call the same collectives in another order."""
    branches: dict[ast.AST, dict[str, list[Met]]] = {}
    for place in met:
        guard = place.around[0] if place.around else None
        if guard is not None and guard.how == "inside" and isinstance(guard.node, ast.If):
            sides = branches.setdefault(guard.node, {"body": [], "orelse": []})
            sides[guard.branch or "body"].append(place)
    for node, sides in branches.items():
        orders = [_order(places) for places in sides.values()]
        if orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]):
            at = next(
                at for at, (one, other) in enumerate(zip(*orders, strict=True)) if one != other
            )
            place = next(
                each for each in sides["body"] if each.bears[0].collective.name == orders[0][at]
            )
            message = (
                f"Ranks on one side of `{place.around[0].test.says}` (line {node.lineno}) call"  # type: ignore[attr-defined]
                f" {orders[0][at]} where the others call {orders[1][at]}."
            )
            yield RULE.finding(
                module,
                place.call,
                message,
                cause="collective-order-mismatch",
                why=ORDER_WHY,
                confidence=0.8,
                fix=ORDER_FIX,
            )


def _order(places: list[Met]) -> list[str]:
    """The collectives of all ranks in the order of the source."""
    ordered = sorted(places, key=lambda place: (place.call.lineno, place.call.col_offset))
    return [
        reached.collective.name
        for place in ordered
        for reached in place.bears
        if not reached.collective.group and reached.collective.kind in {"barrier", "collective"}
    ]


def _met(program: Program, module: Module, scope: ast.AST, calls: list[ast.Call]) -> list[Met]:
    in_part = leaves_in_part(program, module).get(scope, [])
    return [
        Met(
            call,
            bears,
            guards(program, module, call)
            + [each for each in in_part if is_left_behind(module, each.node, each.how, call)],
        )
        for call in calls
        if module.scope_of(call) is scope and (bears := reached_by_call(program, module, call))
    ]


def _met_by_partner(program: Program, holder: Function | None) -> list[Met]:
    """What the other half of a context manager meets in."""
    partner = PARTNERS.get(holder.name, "") if holder is not None else ""
    other = holder.cls.methods.get(partner) if holder is not None and holder.cls else None
    return _met(program, other.module, other.node, other.calls) if other is not None else []


def _by_callback(
    program: Program, module: Module, alone: list[ReachedCollective], guard: Guard
) -> bool:
    """Whether the other branch defines a callback with the same collective."""
    if guard.how != "inside" or not isinstance(guard.node, ast.If):
        return False
    names = {item.collective.name for item in alone}
    other = guard.node.orelse if guard.branch == "body" else guard.node.body
    return any(
        each.collective.name in names
        for statement in other
        for node in ast.walk(statement)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for call in module.function_of_node[node].calls
        for each in reached_by_call(program, module, call)
    )


def _counts(guard: Guard) -> bool:
    # a check of the arguments: it stops all that fail it
    return not (guard.how == "raise" and guard.test.polarity == "some")


def _is_excluded(program: Program, module: Module, place: Met, guard: Guard) -> bool:
    """Whether ranks leave only under another condition too, and the collectives ask for the
    same: `if not fsdp and not main: return`, `if fsdp: meet()`.
    """
    if guard.how == "inside" or not isinstance(guard.node, ast.If):
        return False
    left = stated(module, guard.node.test, holds=guard.branch == "body")
    left += stated_around(module, guard.node)
    others = [each for each in left if ranks.test(program, module, each.node) is None]
    if contradicts(others, stated_around(module, place.call)):
        return True
    test = guard.node.test
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return False
    names = {last_name(node) for each in others for node in ast.walk(each.node)} - {
        "",
        "args",
        "self",
        "cfg",
        "config",
    }
    asked = [up.test for up in module.ancestors(place.call) if isinstance(up, ast.If)]
    asked += [
        up.test
        for reached in place.bears
        for up in reached.module.ancestors(reached.node)
        if isinstance(up, ast.If)
    ]
    asked += [
        each.test
        for reached in place.bears
        for step in reached.chain
        for each in ast.walk(step.node)
        if isinstance(each, ast.If)
    ]
    return any(last_name(node) in names for part in asked for node in ast.walk(part))


def _is_group_of_others(module: Module, place: Met, guard: Guard, met: list[Met]) -> bool:
    """Whether ranks left before the job's group was made, which is told the number of the others:
    `if rank % 4: exit()`, `init_process_group(world_size=…)`.
    """
    return guard.how != "inside" and any(
        there.call.lineno <= place.call.lineno
        and before(module, guard.node, there.call)
        and argument(there.call, "world_size", 3) is not None
        for there in met
        if any(each.collective.name == "init_process_group" for each in there.bears)
    )


def _is_met(reached: ReachedCollective, guard: Guard, call: ast.Call, met: list[Met]) -> bool:
    """Whether the other ranks call the same collective: elsewhere, before leaving, or inverted."""
    same = [
        there
        for there in met
        if any(each.collective.name == reached.collective.name for each in there.bears)
    ]
    if guard.how != "inside":  # the leaving branch
        return any(
            each.node is guard.node and each.how == "inside"
            for there in same
            for each in there.around
        )
    own = other = sides = others = 0
    for there in same:
        for each in there.around:
            if each.node is guard.node and each.how == "inside":
                own += each.branch == guard.branch
                other += each.branch != guard.branch
                if each.branch != guard.branch and _runs_the_same(reached, there):
                    return True
            elif there.call is not call and _opposite(guard, each) and _words(guard) & _words(each):
                return True
        polarities = {each.test.polarity for each in there.around[:1]}
        sides += guard.test.polarity in polarities
        others += bool(polarities & {"main", "others"} - {guard.test.polarity})
    return own <= other or (guard.test.polarity != "some" and sides == others)


def _runs_the_same(reached: ReachedCollective, there: Met) -> bool:
    """Whether it is the same function that both call, as one side may in several branches."""
    return bool(reached.chain) and any(
        each.chain[:1] == reached.chain[:1] and each.node is reached.node for each in there.bears
    )


def _is_served(module: Module, place: Met, reached: ReachedCollective, guard: Guard) -> bool:
    """Whether ranks but the first wait in a loop for what it sends them, whenever that may be:
    `if rank == 0: serve()`, `else: while True: broadcast(request)`.
    """
    around = module.ancestors(place.call)
    around = around[: around.index(guard.node)] if guard.node in around else around
    if reached.node is not place.call:
        around = [*around, *reached.module.ancestors(reached.node)]
    return guard.test.polarity == "others" and any(isinstance(each, ast.While) for each in around)


def _fails(guard: Guard) -> bool:
    """Whether ranks leave with an error, upon which a launcher ends the others: `exit(1)`."""
    if guard.how != "exit" or not isinstance(guard.node, ast.If):
        return False
    branch = guard.node.body if guard.branch == "body" else guard.node.orelse
    return any(
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and last_name(statement.value.func) in {"exit", "_exit"}
        and any(
            isinstance(code, ast.Constant) and code.value not in {0, None}
            for code in statement.value.args
        )
        for statement in branch
    )


def _is_never_asked(
    program: Program, holder: Function | None, call: ast.Call, guard: Guard
) -> bool:
    """Whether all callers give a parameter that decides about the call a value of their own, which
    may turn it off: `def show(results=None)`, `results or gather()`, and everywhere `show(mine)`.
    Who comes, and whether there are other ranks, is no such question.
    """
    sites = callers(program, holder) if holder is not None else []
    if holder is None or not sites:
        return False
    asked = frozenset(
        each
        for each in conditions_of(program, holder, call)
        if not ALONE.search(each.name) and each.name.removeprefix("self.") not in _words(guard)
    )
    return bool(asked) and all(
        passed_on(program, site.module, site.node, holder, asked, None) is None
        or is_undecided(program, site.module, site.node, holder, asked, None)
        for site in sites
    )


def _is_met_elsewhere(
    program: Program, module: Module, reached: ReachedCollective, guard: Guard
) -> bool:
    """Whether another function of this module has the other half: `if rank > 0: barrier()` here,
    `if rank == 0: barrier()` in what loads the data.
    """
    if guard.how != "inside" or guard.test.polarity == "some" or reached.chain:
        return False
    return any(
        polarity == {"main": "others", "others": "main"}[guard.test.polarity]
        for scope, name, polarity in _halves(program, module)
        if name == reached.collective.name and scope is not module.scope_of(guard.node)
    )


@remembered
def _halves(program: Program, module: Module) -> list[tuple[ast.AST, str, str]]:
    """The collectives under a rank condition in a module: scope, name, and which ranks come."""
    found: list[tuple[ast.AST, str, str]] = []
    for call in module.of(ast.Call):
        own = collective_of(program, module, call)
        if own is None:
            continue
        around = guards(program, module, call)
        if around and around[0].how == "inside":
            found.append((module.scope_of(call), own.name, around[0].test.polarity))
    return found


def _opposite(guard: Guard, other: Guard) -> bool:
    return {guard.test.polarity, other.test.polarity} == {"main", "others"} or (
        guard.test.polarity == "some"
        and (guard.test.turned().says == other.test.says or _differs(guard, other))
    )


def _differs(guard: Guard, other: Guard) -> bool:
    """Whether one number of a rank is asked for two values: `rank % 2 == 0`, `rank % 2 == 1`."""
    asked, there = (_equals(each.node) for each in (guard, other))
    return any(asked[text] != there[text] for text in asked.keys() & there.keys())


def _equals(node: ast.AST) -> dict[str, str]:
    return {
        ast.unparse(each.left): ast.unparse(each.comparators[0])
        for each in ast.walk(getattr(node, "test", node))
        if isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.Eq)
    }


COMMON_WORDS = set("not in is and or args self int os environ None".split())


def _words(guard: Guard) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w+", guard.test.says)) - COMMON_WORDS


def _finding(
    program: Program,
    module: Module,
    place: Met,
    reached: ReachedCollective,
    guard: Guard,
    met: list[Met],
) -> Finding:
    sure = min(reached.collective.sure, 0.97) * (0.95 if reached.chain else 1.0)
    if reached.collective.group:
        sure = 0.4
    elif guard.test.polarity == "some":
        sure *= 0.72
    if guard.how == "raise":
        sure *= 0.7
    if guard.partly:
        sure *= 0.85
    what = _what(reached, module)
    across = [
        each
        for there in met
        for each in there.around
        if each.node is guard.node and each.branch != guard.branch
    ]
    if (
        guard.how == "inside"
        and isinstance(guard.node, ast.If)
        and across
        and not reached.collective.group
    ):
        message = (
            f"{what}, but ranks on the other side of `{guard.test.says}` (line {guard.line}) call"
            " another collective."
        )
        return RULE.finding(
            module,
            place.call,
            message,
            cause="collective-order-mismatch",
            why=ORDER_WHY,
            confidence=sure * 0.85,
            fix=ORDER_FIX,
        )
    who = "not all ranks reach it" if guard.partly else WHO[guard.test.polarity]
    message = f"{what}, and {who}: {_who(guard)}."
    fix, edits = _fix(program, module, place.call, reached, guard)
    found = RULE.finding(module, place.call, message, confidence=sure, fix=fix, edits=edits)
    return replace(found, reaches=(reached.module.path, reached.node.lineno))


def _what(reached: ReachedCollective, module: Module) -> str:
    if not reached.chain:
        return reached.collective.says
    way = " -> ".join(f"{step.name}()" for step in reached.chain)
    at = (
        f"line {reached.node.lineno}"
        if reached.module is module
        else f"{reached.module.path}:{reached.node.lineno}"
    )
    return f"{way} calls {reached.collective.name} at {at}"


def _who(guard: Guard) -> str:
    if guard.how == "decorator":
        return f"its function is under {guard.test.says}"
    if guard.how == "inside":
        return f"it stands under `{guard.test.says}` (line {guard.line})"
    may = "may have" if guard.partly else "have"
    return f"ranks with `{guard.test.turned().says}` {may} {LEAVES[guard.how]} in line {guard.line}"


def _fix(
    program: Program, module: Module, call: ast.Call, reached: ReachedCollective, guard: Guard
) -> tuple[str, tuple[Edit, ...] | None]:
    name = reached.collective.name
    if guard.how == "decorator":
        return (
            f"Move {name} out of the decorated function or remove the decorator; keep only writing"
            " and printing on the main rank."
        ), None
    if guard.how != "inside":
        return (
            f"Let all ranks reach {name}: put the main rank's work under an `if` instead of leaving"
            " early."
        ), None
    moved = _moved_out(module, call, guard, reached)
    if moved is not None:
        return f"Call {name} on all ranks, after the condition.", moved
    moved = _moved_ahead(program, module, call, guard, reached)
    if moved is not None:
        return f"Call {name} on all ranks, before the condition.", moved
    return (
        f"Call {name} on all ranks, outside the condition; keep only writing and printing under it."
    ), None


def _is_movable(module: Module, guard: Guard, reached: ReachedCollective) -> bool:
    """Whether a call of all ranks stands itself in a plain `if` of the main rank."""
    node = guard.node
    return (
        not reached.chain
        and not reached.collective.group
        and not module.is_notebook
        and isinstance(node, ast.If)
        and not isinstance(node.test, ast.BoolOp | ast.NamedExpr)
        and (guard.branch, guard.test.polarity) == ("body", "main")
    )


def _moved_out(
    module: Module, call: ast.Call, guard: Guard, reached: ReachedCollective
) -> tuple[Edit, ...] | None:
    """Move a barrier at the end of a plain `if` behind it; one rank does the same as before."""
    node, statement = guard.node, module.parents.get(call)
    if reached.collective.kind != "barrier" or not _is_movable(module, guard, reached):
        return None
    assert isinstance(node, ast.If)
    if node.orelse or not isinstance(statement, ast.Expr):
        return None
    if (
        len(node.body) < 2
        or node.body[-1] is not statement
        or statement.end_lineno != statement.lineno
        or node.body[-2].end_lineno == statement.lineno
    ):
        return None
    if isinstance(module.parents.get(node), ast.If) and node in module.parents[node].orelse:  # type: ignore[attr-defined]
        return None
    line, head = module.lines[statement.lineno - 1], module.lines[node.lineno - 1]
    if (
        line.strip() != module.source_of(statement, 500)
        or line[: statement.col_offset].strip()
        or not head.lstrip().startswith("if")
    ):
        return None
    indent = head[: len(head) - len(head.lstrip())]
    return (Edit(statement.lineno, 0, statement.lineno, len(line), indent + line.lstrip()),)


def _moved_ahead(
    program: Program, module: Module, call: ast.Call, guard: Guard, reached: ReachedCollective
) -> tuple[Edit, ...] | None:
    """Move a collective at the start of a plain `if` ahead of it, if all ranks have its inputs."""
    node, statement = guard.node, module.parents.get(call)
    kinds = {"barrier", "collective"}
    if reached.collective.kind not in kinds or not _is_movable(module, guard, reached):
        return None
    assert isinstance(node, ast.If)
    plain = isinstance(statement, ast.Expr) or (
        isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    )
    if (
        not plain
        or not isinstance(statement, ast.Expr | ast.Assign)
        or node.body[0] is not statement
        or node.test.end_lineno == statement.lineno
    ):
        return None
    if (
        not stands_alone_first(module, node)
        or module.lines[node.lineno - 1].lstrip().startswith("elif")
        or not _is_everywhere(program, module, statement)
    ):
        return None
    gone, text = taken_out(module, statement), module.source_of(statement, 500)
    if gone is None or module.lines[statement.lineno - 1].strip() != text:
        return None
    if len(node.body) > 1:
        return insert_line(module, node, text), gone
    if node.orelse or node.lineno + 1 != statement.lineno:
        return None
    head = module.lines[node.lineno - 1]
    return (
        Edit(
            node.lineno,
            0,
            statement.lineno,
            len(module.lines[statement.lineno - 1]),
            head[: len(head) - len(head.lstrip())] + text,
        ),
    )


def _is_everywhere(program: Program, module: Module, statement: ast.Expr | ast.Assign) -> bool:
    """Whether every name in a statement is bound where no rank condition is."""
    for name in (each for each in ast.walk(statement.value) if isinstance(each, ast.Name)):
        found = program.names.bindings(module, name)
        if found and not any(
            each.kind != "other" and not guards(program, module, each.node) for each in found
        ):
            return False
    return True
