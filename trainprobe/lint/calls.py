"""The calls of a program, found by name and by the project's function that they run."""

from __future__ import annotations

import ast
from typing import NamedTuple

from trainprobe.lint.modules import Class, Function, Module
from trainprobe.lint.program import Program, remembered

MOST_REACHED = 500
MOST_BASES = 100


class Call(NamedTuple):
    """A call with the full name of what it calls."""

    module: Module
    node: ast.Call
    name: str


def call_sites(program: Program) -> dict[Function, list[tuple[Module, ast.Call]]]:
    """Return, for every function of the project, the calls that run it."""
    memory: dict[Function, list[tuple[Module, ast.Call]]] | None = program.memory.get("call sites")
    if memory is None:
        memory = {}
        called: dict[ast.Call, Function] = {}
        for module in program.modules.values():
            with program.tolerance(module):
                for call in module.of(ast.Call):
                    function = program.called(module, call)
                    if function is not None:
                        called[call] = function
                        memory.setdefault(function, []).append((module, call))
        program.memory["call sites"], program.memory["called"] = memory, called
    return memory


def called_functions(program: Program) -> dict[ast.Call, Function]:
    """The project's function that each call runs; calls of anything else are not in it."""
    call_sites(program)
    called: dict[ast.Call, Function] = program.memory["called"]
    return called


def callers(program: Program, function: Function) -> list[Call]:
    """Return the calls in the project that run `function`; of a constructor those of its class."""
    return [
        Call(module, node, function.qualname)
        for module, node in call_sites(program).get(function, [])
    ]


@remembered
def reaches(program: Program, *functions: Function) -> list[Function]:
    """Return the functions of the project that running these may run, themselves included."""
    reached, todo = dict.fromkeys(functions), list(functions)
    while todo and len(reached) < MOST_REACHED:
        function = todo.pop()
        for call in function.calls:
            called = program.called(function.module, call)
            if called is not None and called not in reached:
                reached[called] = None
                todo.append(called)
    return list(reached)


def calls_ending_in(program: Program, last: str) -> list[Call]:
    """All examined calls whose full name ends in `last`, in source order."""
    found = calls_by_last_name(program).get(last, [])
    if len(program.examined) == len(program.modules):
        return found
    examined = set(program.examined)
    return [call for call in found if call.module in examined]


@remembered
def calls_by_last_name(program: Program) -> dict[str, list[Call]]:
    known: dict[str, list[Call]] = {}
    for module in program.modules.values():
        with program.tolerance(module):
            for node in module.of(ast.Call):
                for called in _names_called(program, module, node.func):
                    for name in class_and_bases(program, called):
                        known.setdefault(name.rpartition(".")[2], []).append(
                            Call(module, node, name)
                        )
    for found in known.values():
        found.sort(key=lambda call: (call.module.path, call.node.lineno, call.node.col_offset))
    return known


def _names_called(program: Program, module: Module, func: ast.expr) -> list[str]:
    """The full name of what is called, or both of `Sampler = Random if alone else Distributed`."""
    binding = program.names.latest(module, func) if isinstance(func, ast.Name) else None
    options: list[ast.expr] = [func]
    if binding is not None and binding.kind == "value" and isinstance(binding.value, ast.IfExp):
        either = (binding.value.body, binding.value.orelse)
        if all(isinstance(each, ast.Name | ast.Attribute) for each in either):
            options = [*either]
    return [name for each in options if (name := program.dotted(module, each))]


def calls_to(program: Program, *names: str) -> list[Call]:
    """All examined calls of these full names; subclasses of the project count as their bases."""
    return [
        call
        for name in names
        for call in calls_ending_in(program, name.rpartition(".")[2])
        if call.name == name
    ]


def class_and_bases(program: Program, name: str) -> list[str]:
    """Return a class's full name and those of its bases, the project's followed."""
    found = [name]
    for item in found:  # which grows meanwhile
        cls = program.class_named(item) if len(found) < MOST_BASES else None
        if cls is not None:
            found += [
                base
                for node in cls.node.bases
                if (base := program.dotted(cls.module, node)) and base not in found
            ]
    return found


def heirs(program: Program, cls: Class) -> list[Class]:
    """The project's classes that have `cls` among their bases."""
    below: dict[str, list[Class]] | None = program.memory.get("classes below")
    if below is None:
        below = program.memory["classes below"] = {}
        for module in program.modules.values():
            for other in module.classes.values():
                for base in class_and_bases(program, other.full_name)[1:]:
                    below.setdefault(base, []).append(other)
    return below.get(cls.full_name, [])


def versions(program: Program, function: Function) -> list[Function]:
    """What classes below have in place of this method."""
    below = heirs(program, function.cls) if function.cls is not None else []
    return [other.methods[function.name] for other in below if function.name in other.methods]


def is_replaced(program: Program, function: Function) -> bool:
    """Whether classes below have versions of their own of this method, and no object that keeps
    this one is seen to be made.
    """
    return bool(versions(program, function)) and not makers(program, function)


def makers(program: Program, function: Function) -> list[Call]:
    """The calls that make an object whose method of this name is `function`."""
    cls = function.cls
    if cls is None:
        return []
    keep = {
        each.full_name
        for each in (cls, *heirs(program, cls))
        if program.names.method(each, function.name) is function
    }
    return [
        call
        for name in sorted(keep)
        for call in calls_to(program, name)
        if program.dotted(call.module, call.node.func) == name
    ]


def is_subclass(program: Program, name: str, *of: str) -> bool:
    return any(item in of for item in class_and_bases(program, name))


def argument_for(call: ast.Call, function: Function, parameter: str) -> ast.expr | None:
    """Return the argument that a call gives for a parameter of the function that it runs."""
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    if parameter not in function.parameters:
        return None
    bound = function.cls is not None and (
        isinstance(call.func, ast.Attribute) or function.name == "__init__"
    )
    at = function.parameters.index(parameter) - (1 if bound else 0)
    return (
        call.args[at]
        if 0 <= at < len(call.args)
        and not any(isinstance(argument, ast.Starred) for argument in call.args)
        else None
    )
