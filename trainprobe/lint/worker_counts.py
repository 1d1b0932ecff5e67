"""How many loader workers one rank of a script has at once: its loaders with their numbers, how often each is made, and which outlive their loop.

Workers of a loader end with the loop over it. They stay beside those of another loader under `persistent_workers`, while an iterator is held
(`iter`, `cycle`, `zip`), and while the other loader is gone over inside the loop (torch/utils/data/dataloader.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainprobe.lint import calls
from trainprobe.lint.loaders import LOADER, loaders, workers
from trainprobe.lint.modules import Function, Module
from trainprobe.lint.order import exclusive
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import Call, Place, callers, given, imported, origin
from trainprobe.lint.values import argument

HOOKS = {"train_dataloader", "val_dataloader"}
HOLDS = {"iter", "itertools.cycle", "itertools.chain", "~cycle", "zip", "next"}
PASSES = {"enumerate", "tqdm.tqdm", "tqdm.auto.tqdm", "itertools.islice", "~tqdm", "iter", "zip", "itertools.cycle"}
MOST = 16


class Load(NamedTuple):
    """A loader that a script makes: its workers for each rank, how many such loaders are made, and whether its workers stay beside those of others."""

    call: Call
    number: int
    times: int
    stays: bool


def scripts(program: Program) -> list[tuple[Module, list[Module]]]:
    """Return the modules that no other imports, each with the modules that it imports, itself first."""
    targets = {module: [other for _statement, other in imported(program, module)] for module in program.modules.values()}
    below = {other for others in targets.values() for other in others}
    found = []
    for module in program.modules.values():
        if module not in below:
            seen, left = dict.fromkeys([module]), [module]
            while left and len(seen) < 400:
                for other in targets[left.pop()]:
                    if other not in seen:
                        seen[other] = None
                        left.append(other)
            found.append((module, list(seen)))
    return found


def loads(program: Program, modules: list[Module]) -> list[Load]:
    """Return the loaders that a script of these modules makes, those with a known number of workers; of two branches the larger."""
    own = set(modules)
    here = [call for call in loaders(program) if call.module in own]
    stay = _staying(program, modules) if here else set()
    found = []
    for call in here:
        function = call.module.function_of(call.node)
        times = _turns(program, call.module, call.node) * (_runs(program, function, own, 0) if function is not None else 1)
        stays = call.node in stay or _is_persistent(program, call)
        number = workers(program, call)
        if isinstance(number, int):
            found += [Load(call, number, min(times, MOST), stays)]
        elif function is not None:
            found += [Load(call, one, 1, stays) for one in _by_caller(program, call, function, own)]
    kept: list[Load] = []
    for one in sorted(found, key=lambda load: -load.number * load.times):
        if one.number * one.times > 0 and not any(
            one.call.module is other.call.module and one.call.node is not other.call.node and exclusive(one.call.module, one.call.node, other.call.node)
            for other in kept
        ):
            kept.append(one)
    return kept


def together(found: list[Load]) -> list[Load]:
    """Return those whose workers are there at once: all that stay, and of the rest the one with most."""
    stay = [one for one in found if one.stays]
    rest = max((one for one in found if not one.stays), key=lambda one: one.number, default=None)
    return [*stay, *([rest._replace(times=1)] if rest is not None else [])]


def loaders_in(program: Program, module: Module, node: ast.expr, depth: int = 0) -> set[ast.AST]:
    """Return the calls that made the loaders in an expression: through names, tuples that functions return, `enumerate`, `tqdm` and `zip`."""
    if depth > 6:
        return set()
    if isinstance(node, ast.Name):
        binding = program.names.latest(module, node)
        if binding is not None and binding.kind == "unpack" and isinstance(binding.value, ast.Call):
            return _returned(program, module, binding.value, binding.index, depth)
    behind = origin(program, module, node)
    if not isinstance(behind.node, ast.Call):
        return loaders_in(program, behind.module, behind.node, depth + 1) if behind.node is not node else set()
    called = program.dotted(behind.module, behind.node.func)
    if called == LOADER:
        return {behind.node}
    if called in PASSES:
        return {one for part in behind.node.args for one in loaders_in(program, behind.module, part, depth + 1)}
    return _returned(program, behind.module, behind.node, None, depth)


def _returned(program: Program, module: Module, call: ast.Call, index: int | None, depth: int) -> set[ast.AST]:
    function = program.called(module, call)
    if function is None or function.name == "__init__":
        return set()
    found: set[ast.AST] = set()
    for one in function.returns[:4]:
        value = one.value
        if index is not None:
            value = value.elts[index] if isinstance(value, ast.Tuple | ast.List) and index < len(value.elts) else None
        if value is not None:
            found |= loaders_in(program, function.module, value, depth + 1)
    return found


def _is_persistent(program: Program, call: Call) -> bool:
    place = given(program, call.module, call.node, "persistent_workers")
    if place is None:
        return False
    value = program.value(place.module, place.node)
    return value is True or isinstance(place.node, ast.Compare) or (isinstance(value, int) and value > 0)


def _staying(program: Program, modules: list[Module]) -> set[ast.AST]:
    """Loaders whose iterators are held, or that are gone over inside the loop over another one."""
    found: set[ast.AST] = set()
    for module in modules:
        for call in module.of(ast.Call):
            if program.dotted(module, call.func) in HOLDS:
                found |= {one for part in call.args for one in loaders_in(program, module, part)}
        for loop in module.of(ast.For):
            outer = loaders_in(program, module, loop.iter)
            inner = _gone_over(program, module, loop.body) - outer if outer else set()
            if inner:
                found |= outer | inner
    return found


def _gone_over(program: Program, module: Module, body: list[ast.stmt]) -> set[ast.AST]:
    found: set[ast.AST] = set()
    for node in (one for statement in body for one in ast.walk(statement)):
        if isinstance(node, ast.For):
            found |= loaders_in(program, module, node.iter)
        elif isinstance(node, ast.Call) and (function := program.called(module, node)) is not None:
            for one in calls.reaches(program, function):
                found |= {each for loop in ast.walk(one.node) if isinstance(loop, ast.For) for each in loaders_in(program, one.module, loop.iter)}
    return found


def _turns(program: Program, module: Module, node: ast.AST) -> int:
    """How often a place is run within its function: loops over constants, such as the names of the splits."""
    count = 1
    for up in module.ancestors(node):
        heads = [one.iter for one in up.generators] if isinstance(up, ast.ListComp | ast.DictComp | ast.GeneratorExp) else []
        if isinstance(up, ast.For) and not isinstance(up.iter, ast.Name) and _keeps(module, node):
            heads = [up.iter]
        for head in heads:
            over = program.value(module, head)
            count *= len(over) if isinstance(over, list | tuple | dict | set) and over else 1
        if module.function_of_node.get(up) is not None:
            break
    return min(count, MOST)


def _keeps(module: Module, node: ast.AST) -> bool:
    """Whether what a loop makes in each turn is kept: in a dictionary or a list, not under one name."""
    statement = module.statement_of(node)
    return isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript)


def _runs(program: Program, function: Function, own: set[Module], depth: int) -> int:
    """How often a script runs a function, loops of unknown length counted once."""
    known: dict[Function, int] = program.memory.setdefault("runs", {})
    if function in known or depth > MOST:
        return known.get(function, 0)
    known[function] = 0  # ends circles
    sites = [site for site in callers(program, function) if site.module in own]
    count = 1 if (function.name in HOOKS and function.cls is not None) or function in _handed(program) else 0
    for site in sites:
        holder = site.module.function_of(site.node)
        count += _turns(program, site.module, site.node) * (_runs(program, holder, own, depth + 1) if holder is not None else 1)
    if depth == 0:
        known.clear()  # another script may run it more or less often
    else:
        known[function] = count
    return min(count, MOST)


def _handed(program: Program) -> set[Function]:
    """Functions that something else is given to run: `mp.spawn(main, …)`, `Process(target=main)`, and methods of which any may be called."""
    known: set[Function] | None = program.memory.get("handed")
    if known is None:
        known = program.memory["handed"] = set()
        for module in program.modules.values():
            for call in module.of(ast.Call):
                for one in (*call.args, *(word.value for word in call.keywords)):
                    if isinstance(one, ast.Name) and (function := program.function(program.dotted(module, one))) is not None and function.cls is None:
                        known.add(function)
    return known


def _by_caller(program: Program, call: Call, function: Function, own: set[Module]) -> Iterator[int]:
    """The numbers that each caller gives for a parameter that is the number of workers."""
    place = given(program, call.module, call.node, "num_workers", 5)
    if place is None or not isinstance(place.node, ast.Name) or place.node.id not in function.parameters:
        return
    position = function.parameters.index(place.node.id) - (1 if function.cls is not None else 0)
    for site in callers(program, function)[:MOST]:
        if site.module in own:
            told = argument(site.node, place.node.id, position) or function.default_of(place.node.id)
            value = workers_of(program, Place(site.module, told)) if told is not None else 0
            holder = site.module.function_of(site.node)
            if isinstance(value, int) and (holder is None or _runs(program, holder, own, 0)):
                yield value


def workers_of(program: Program, place: Place) -> object:
    """Return the number that an expression is, or `values.UNKNOWN`."""
    value = program.value(place.module, place.node)
    return value if not isinstance(value, bool) else int(value)
