"""The call graph inside the project: which functions make all ranks meet, themselves or through others."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainprobe.lint import flow
from trainprobe.lint.collectives import ENGINE, SHARDED_METHODS, Collective, collective_of, of_wrapped, wrapped
from trainprobe.lint.modules import Function, Module

if TYPE_CHECKING:
    from trainprobe.lint.program import Program

__all__ = ["Borne", "Collective", "borne", "borne_by_call", "calls_of", "collective_of", "reaches"]

DEEPEST = 25
MOST = 4


@dataclass(frozen=True)
class Borne:
    """A collective that running a function leads to. `chain` are the functions on the way, outermost first; `parameter` is set where it
    is one only if that argument is a sharded model, `method` then says which method is called on it.
    """

    collective: Collective
    module: Module
    node: ast.Call
    chain: tuple[Function, ...]
    parameter: str = ""
    method: str = ""
    flag: str = ""
    """The parameter of the outermost function under whose truth it stands: `if sync: barrier()`."""


def borne(program: Program, function: Function, depth: int = 0) -> tuple[Borne, ...]:
    """Return the collectives that calling `function` leads to on every rank: at most a few, those under a rank condition left out."""
    memory: dict[Function, tuple[Borne, ...]] = program.memory.setdefault("borne", {})
    if function in memory or depth > DEEPEST:
        return memory.get(function, ())
    memory[function] = ()  # ends circles
    found: dict[tuple[str, str], Borne] = {}
    if not any(flow.decorated_by(program, function.module, one) for one in function.node.decorator_list):
        for call in function.calls:
            for one in _of_call(program, function, call, depth):
                if (
                    one.collective.kind != "setup"
                    and len(found) < MOST
                    and (one.collective.name, one.parameter) not in found
                    and not flow.guards(program, function.module, call)
                ):
                    found[one.collective.name, one.parameter] = one
    memory[function] = tuple(found.values())
    return memory[function]


def borne_by_call(program: Program, module: Module, call: ast.Call) -> tuple[Borne, ...]:
    """Return the collectives that a call leads to: its own, or those of the project's function that it runs with these arguments."""
    own = collective_of(program, module, call)
    if own is not None:
        return (Borne(own, module, call, ()),)
    function = program.called(module, call)
    if function is None:
        return ()
    return tuple(_bound(program, module, call, function, borne(program, function), None))


def _of_call(program: Program, holder: Function, call: ast.Call, depth: int) -> list[Borne]:
    module = holder.module
    if isinstance(module.scope_of(call), ast.Lambda):
        return []
    own = collective_of(program, module, call)
    if own is not None:
        return [] if own.group else [Borne(own, module, call, (holder,), flag=_flag(holder, call))]
    receiver, method = (call.func, "__call__") if isinstance(call.func, ast.Name) else (getattr(call.func, "value", None), getattr(call.func, "attr", ""))
    if isinstance(receiver, ast.Name) and receiver.id in holder.parameters and (method in SHARDED_METHODS or method in ENGINE):
        would = of_wrapped({"fsdp"}, method) or of_wrapped({"deepspeed"}, method)
        return [Borne(would, module, call, (holder,), receiver.id, method)] if would else []
    function = program.called(module, call)
    if function is None or function is holder:
        return []
    return _bound(program, module, call, function, borne(program, function, depth + 1), holder)


def _bound(program: Program, module: Module, call: ast.Call, function: Function, inner: tuple[Borne, ...], holder: Function | None) -> list[Borne]:
    """What a function bears, with its parameters bound to the arguments of one call."""
    found = []
    way = (holder,) if holder is not None else ()
    for one in inner:
        flag = ""
        if one.flag:
            told = given_for(call, function, one.flag) or function.default_of(one.flag)
            if told is not None and any(program.value(module, told) is off for off in (False, None)):
                continue  # turned off on this way
            flag = told.id if holder is not None and isinstance(told, ast.Name) and told.id in holder.parameters else ""
        flag = flag or (_flag(holder, call) if holder is not None else "")
        if not one.parameter:
            found.append(Borne(one.collective, one.module, one.node, (*way, *one.chain), flag=flag))
            continue
        given = given_for(call, function, one.parameter)
        if given is None:
            continue
        if holder is not None and isinstance(given, ast.Name) and given.id in holder.parameters:
            found.append(Borne(one.collective, one.module, one.node, (*way, *one.chain), given.id, one.method))
            continue
        real = of_wrapped(wrapped(program, module, given), one.method)
        if real is not None:
            found.append(Borne(real, one.module, one.node, (*way, *one.chain)))
    return found


def _flag(holder: Function, call: ast.Call) -> str:
    """The parameter of a function under whose truth a call in it stands."""
    child: ast.AST = call
    for up in holder.module.ancestors(call):
        if up is holder.node:
            break
        if isinstance(up, ast.If) and isinstance(up.test, ast.Name) and up.test.id in holder.parameters and child in up.body:
            return up.test.id
        child = up
    return ""


def given_for(call: ast.Call, function: Function, parameter: str) -> ast.expr | None:
    """Return the argument that a call gives for a parameter of the function that it runs."""
    for word in call.keywords:
        if word.arg == parameter:
            return word.value
    if parameter not in function.parameters:
        return None
    bound = function.cls is not None and (isinstance(call.func, ast.Attribute) or function.name == "__init__")
    at = function.parameters.index(parameter) - (1 if bound else 0)
    return call.args[at] if 0 <= at < len(call.args) and not any(isinstance(one, ast.Starred) for one in call.args) else None


def reaches(program: Program, function: Function) -> set[Function]:
    """Return all functions of the project that running `function` may run, itself included."""
    memory: dict[Function, set[Function]] = program.memory.setdefault("reaches", {})
    if function not in memory:
        seen, todo = {function}, [function]
        while todo and len(seen) < 500:
            one = todo.pop()
            for call in one.calls:
                other = program.called(one.module, call)
                if other is not None and other not in seen:
                    seen.add(other)
                    todo.append(other)
        memory[function] = seen
    return memory[function]


def calls_of(program: Program) -> dict[Function, list[tuple[Module, ast.Call]]]:
    """Return, for every function of the project, the calls that run it."""
    memory: dict[Function, list[tuple[Module, ast.Call]]] | None = program.memory.get("calls_of")
    if memory is None:
        memory = {}
        for module in program.modules.values():
            with program.tolerance(module):
                for call in module.of(ast.Call):
                    function = program.called(module, call)
                    if function is not None:
                        memory.setdefault(function, []).append((module, call))
        program.memory["calls_of"] = memory
    return memory
