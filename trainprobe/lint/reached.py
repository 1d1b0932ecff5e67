"""The collectives that a call leads to, itself or through the project's functions."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainprobe.lint import flow, ranks
from trainprobe.lint.calls import argument_for, is_replaced, versions
from trainprobe.lint.collectives import (
    ENGINE,
    SHARDED_METHODS,
    Collective,
    collective_of,
    of_wrapped,
    of_wrapped_in,
)
from trainprobe.lint.conditions import (
    Condition,
    conditions_of,
    implied,
    is_undecided,
    passed_on,
    stated,
)
from trainprobe.lint.modules import Function, Module, last_name
from trainprobe.lint.wrappers import SHARDING, wrapped

if TYPE_CHECKING:
    from trainprobe.lint.program import Program

DEEPEST = 25
MOST = 4
ALONE = re.compile(
    r"distributed|is_initialized|is_available|world_size|num_processes|n_?gpu|num_gpus|ddp|use_dist"
    r"|is_dist|multi_?gpu|parallel|cuda",
    re.IGNORECASE,
)
"""Words of a condition that asks whether there are other ranks at all."""
OPTIONS = {"args", "arg", "opt", "opts", "options", "cfg", "config", "conf", "hparams", "flags"}
"""Names under which a job's options are handed around: what they ask for, all ranks do."""
ENTERED = ("__enter__", "__exit__")
BOTH_SIDES = ({"body", "orelse"}, {"main", "others"})
LONGEST = 4
"""Functions on the way to a collective beyond which too much may turn it off."""


@dataclass(frozen=True)
class ReachedCollective:
    """A collective that a function leads to. `chain` are the functions on the way, outermost first.
    With `parameter`, it is one only if that argument is a sharded model, on which `method` is
    called.
    """

    collective: Collective
    module: Module
    node: ast.Call
    chain: tuple[Function, ...]
    parameter: str = ""
    method: str = ""
    conditions: frozenset[Condition] = frozenset()
    """What it asks of the outermost function: `if sync: barrier()`."""
    is_asked: bool = False
    """Whether a function on the way calls it under a condition that cannot be followed."""

    @property
    def is_certain(self) -> bool:
        """Whether nothing on the way may turn it off, but for a job of one rank."""
        return (
            not self.is_asked
            and len(self.chain) <= LONGEST
            and all(ALONE.search(each.name) for each in self.conditions)
        )


def reached_by_function(
    program: Program, function: Function, depth: int = 0
) -> tuple[ReachedCollective, ...]:
    """The collectives that `function` reaches on every rank, at most a few."""
    memory: dict[Function, tuple[ReachedCollective, ...]] = program.memory.setdefault(
        "reached collectives", {}
    )
    if function in memory or depth > DEEPEST:
        return memory.get(function, ())
    memory[function] = ()  # ends circles
    found: dict[tuple[str, str, frozenset[Condition], bool], ReachedCollective] = {}
    if not any(
        flow.decorated_by(program, function.module, decorator)
        for decorator in function.node.decorator_list
    ):
        sides: dict[tuple[ast.AST | None, str], set[str]] = {}
        for call in function.calls:
            for item in _of_call(program, function, call, depth):
                key = (
                    item.collective.name,
                    item.parameter,
                    item.conditions,
                    item.is_asked,
                )
                if item.collective.kind == "setup" or len(found) >= MOST or key in found:
                    continue
                around = flow.guards(program, function.module, call)
                if len(around) == 1 and around[0].how == "inside":
                    # `if main: work(); barrier()`, `else: barrier()`, or one behind the other, as
                    # where the main rank goes first: all ranks meet in it
                    for place, side in (
                        (around[0].node, around[0].branch),
                        (None, around[0].test.polarity),
                    ):
                        met = sides.setdefault((place, item.collective.name), set())
                        met.add(side)
                        around = [] if met in BOTH_SIDES else around
                if not around:
                    found[key] = item
    memory[function] = _either_way(list(found.values()))
    return memory[function]


def _either_way(found: list[ReachedCollective]) -> tuple[ReachedCollective, ...]:
    """Drop a condition where its opposite leads to the same collective: `if rows: save_rows()`,
    `else: save_sums()`, which both meet in a barrier.
    """
    made: list[ReachedCollective] = []
    for item in found:
        for at, other in enumerate(made):
            apart = item.conditions ^ other.conditions
            if (
                (item.collective.name, item.parameter) == (other.collective.name, other.parameter)
                and len(apart) == len({each.holds for each in apart}) == 2
                and len({each.name for each in apart}) == 1
            ):
                both = item.conditions & other.conditions
                asked = item.is_asked or other.is_asked
                made[at] = replace(other, conditions=both, is_asked=asked)
                break
        else:
            made.append(item)
    return tuple(made)


def reached_by_call(
    program: Program, module: Module, call: ast.Call
) -> tuple[ReachedCollective, ...]:
    """The collectives that a call reaches: its own, or those of the project's function."""
    own = collective_of(program, module, call)
    if own is not None:
        return (ReachedCollective(own, module, call, ()),)
    function = program.called(module, call) or only_method(program, module, call)
    run = [function] if function is not None else []
    return tuple(
        item
        for each in (*run, *entered(program, module, call))
        for item in _bound(program, module, call, each, reached_by_function(program, each), None)
    )


def entered(program: Program, module: Module, call: ast.Call) -> list[Function]:
    """What `with First():` runs of a class of the project."""
    block = module.parents.get(call)
    if not isinstance(block, ast.withitem) or block.context_expr is not call:
        return []
    cls = program.class_named(program.dotted(module, call.func))
    methods = [program.names.method(cls, name) for name in ENTERED] if cls is not None else []
    return [method for method in methods if method is not None]


def only_method(program: Program, module: Module, call: ast.Call) -> Function | None:
    """The one method of the project with the name that is called on an object of unknown class:
    `trainer.save_checkpoint()` in a callback. A name of one word may well be a library's.
    """
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if "_" not in name.strip("_") or not program.dotted(module, call.func).startswith("~"):
        return None
    named: dict[str, list[Function]] = program.memory.setdefault("methods by name", {})
    if not named:
        for each in program.modules.values():
            for cls in each.classes.values():
                for method, function in cls.methods.items():
                    named.setdefault(method, []).append(function)
    found = named.get(name, [])
    return found[0] if len(found) == 1 else None


def _of_call(
    program: Program, holder: Function, call: ast.Call, depth: int
) -> list[ReachedCollective]:
    module = holder.module
    if isinstance(module.scope_of(call), ast.Lambda):
        return []
    own = collective_of(program, module, call)
    if own is not None:
        return (
            []
            if own.group
            else [
                ReachedCollective(
                    own,
                    module,
                    call,
                    (holder,),
                    conditions=conditions_of(program, holder, call),
                    is_asked=_is_asked(program, holder, call),
                )
            ]
        )
    receiver, method = (
        (call.func, "__call__")
        if isinstance(call.func, ast.Name)
        else (getattr(call.func, "value", None), getattr(call.func, "attr", ""))
    )
    if (
        isinstance(receiver, ast.Name)
        and receiver.id in holder.parameters
        and (method in SHARDED_METHODS or method in ENGINE)
    ):
        would = of_wrapped({"fsdp"}, method) or of_wrapped({"deepspeed"}, method)
        return (
            [ReachedCollective(would, module, call, (holder,), receiver.id, method)]
            if would
            else []
        )
    function = program.called(module, call)
    if function is None or function is holder:
        return []
    return _bound(
        program, module, call, function, reached_by_function(program, function, depth + 1), holder
    )


def _is_asked(program: Program, holder: Function, call: ast.Call) -> bool:
    """Whether a condition in `holder` that neither its parameters nor the number of ranks answer
    decides about a call.
    """
    module = holder.module
    at: ast.AST = call
    for up in module.ancestors(call):
        if up is holder.node:
            break
        if isinstance(up, ast.If | ast.IfExp | ast.While) and at is not up.test:
            inside = at in up.body if isinstance(up.body, list) else at is up.body
            if not (
                is_of_all(module, up.test)
                or implied(program, module, up.test, holds=inside)
                or ranks.test(program, module, up.test)
            ):
                return True
        at = up
    return False


def is_of_all(module: Module, test: ast.expr) -> bool:
    """Whether a condition asks only for other ranks, the user's options or the number of a step."""
    if ALONE.search(module.source_of(test, 200)):
        return True
    return all(
        _is_option(each.node) and not SHARDING.search(each.text)
        for each in stated(module, test, holds=True)
    )


def _is_option(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(operand=inner):
            return _is_option(inner)
        case ast.BoolOp(values=values):
            return all(map(_is_option, values))
        case ast.Compare(left=ast.BinOp(op=ast.Mod())):
            return True
        case ast.Compare(left=left, comparators=others):
            return all(
                _is_option(each) or isinstance(each, ast.Constant) for each in (left, *others)
            )
        case ast.Attribute(value=holder):
            return last_name(holder).lower().strip("_") in OPTIONS or _is_option(holder)
    return False


def _is_of_another(program: Program, function: Function, item: ReachedCollective) -> bool:
    """Whether the objects that are made have a method of their own, which does not meet in this."""
    return is_replaced(program, function) and any(
        item.collective.name
        not in {each.collective.name for each in reached_by_function(program, version)}
        for version in versions(program, function)
    )


def _bound(
    program: Program,
    module: Module,
    call: ast.Call,
    function: Function,
    inner: tuple[ReachedCollective, ...],
    holder: Function | None,
) -> list[ReachedCollective]:
    """What a function bears, with its parameters bound to the arguments of one call."""
    found = []
    way = (holder,) if holder is not None else ()
    for item in inner:
        conditions = passed_on(program, module, call, function, item.conditions, holder)
        if conditions is None:
            continue  # turned off on this way
        if holder is not None:
            conditions |= conditions_of(program, holder, call)
        bound = replace(
            item,
            chain=(*way, *item.chain),
            conditions=conditions,
            is_asked=item.is_asked
            or _is_of_another(program, function, item)
            or is_undecided(program, module, call, function, item.conditions, holder)
            or (holder is not None and _is_asked(program, holder, call)),
        )
        if not item.parameter:
            found.append(bound)
            continue
        argument = argument_for(call, function, item.parameter)
        if argument is None:
            continue
        if (
            holder is not None
            and isinstance(argument, ast.Name)
            and argument.id in holder.parameters
        ):
            found.append(replace(bound, parameter=argument.id))
            continue
        kinds = wrapped(program, module, argument)
        real = of_wrapped_in(program, item.module, item.node, kinds, item.method)
        if real is not None:
            found.append(replace(bound, collective=real, parameter="", method=""))
    return found
