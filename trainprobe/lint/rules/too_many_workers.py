"""More DataLoader workers than a node can run: all CPUs for each rank, or a number that no node
has.

Workers of a loader end with the loop over it. They stay beside those of another loader under
`persistent_workers`, while an iterator is held (`iter`, `cycle`, `zip`), and while the other loader
is gone over inside the loop (torch/utils/data/dataloader.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainprobe.lint.calls import Call, callers, calls_to, reaches
from trainprobe.lint.conditions import stated_around
from trainprobe.lint.environment import counts_all_cpus
from trainprobe.lint.expressions import Expression, argument_value, resolved_argument
from trainprobe.lint.jobs import imported_modules, runs_on_ranks
from trainprobe.lint.loaders import loaders, loaders_in, workers
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Function, Module, last_name
from trainprobe.lint.order import exclusive
from trainprobe.lint.program import Program, remembered
from trainprobe.lint.rewrites import shared_cpus
from trainprobe.lint.values import argument

RULE = Rule(
    id="too-many-workers",
    cause="cpu-oversubscribed",
    title="More workers than CPUs",
    why=(
        "Workers start once for each rank and each loader. Together they need more CPUs, memory and"
        " open files than the node has, and each step waits for them."
    ),
    fix=(
        "Divide the CPUs of the node among its ranks: len(os.sched_getaffinity(0)) //"
        " int(os.environ.get('LOCAL_WORLD_SIZE', 1)), less one for the rank itself."
    ),
    confidence=0.7,
    also=("fd-exhaustion",),
)

MANY = 64
"""Workers of one rank. Nodes have 8 to 32 CPUs for each GPU; each worker is a process with
memory, descriptors and threads of its own.
"""

OWN_DESCRIPTORS = 12
HOOKS = {"train_dataloader", "val_dataloader"}
HOLDS = {"iter", "itertools.cycle", "itertools.chain", "~cycle", "zip", "next"}
MOST = 16
HINT = 0.45
ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")


def find(program: Program) -> Iterator[Finding]:
    named: list[tuple[Call, str, int | None]] = [
        (call, "num_workers", 5) for call in loaders(program)
    ]
    named += [(call, "dataloader_num_workers", None) for call in calls_to(program, *ARGUMENTS)]
    reported: set[ast.AST] = set()
    for call, option, position in named:
        place = resolved_argument(program, call, option, position)
        if place is None:
            continue
        value = program.value(place.module, place.node)
        if isinstance(value, int) and value >= MANY:
            message = f"{option} is {value}: each rank starts that many worker processes."
            yield RULE.finding(call.module, _spot(call, place), message)
            reported.add(call.node)
        elif counts_all_cpus(program, place) and runs_on_ranks(program, call.module):
            message = (
                f"{option} is the number of all CPUs ({place.module.source_of(place.node)}), and"
                " every rank of the node starts that many workers."
            )
            yield RULE.finding(
                call.module,
                _spot(call, place),
                message,
                confidence=HINT if _asks_a_type(call.module, call.node) else None,
                edits=shared_cpus(program, place),
            )
            reported.add(call.node)
    yield from _all_together(program, reported)


def _all_together(program: Program, reported: set[ast.AST]) -> Iterator[Finding]:
    """Compare all loaders of a script with what one rank, and the node, can have."""
    visited: set[tuple[ast.AST, str]] = set()
    for script, modules in _scripts(program):
        found = _loads(program, modules)
        if not found or reported.intersection(item.call.node for item in found):
            continue
        ranks = _ranks(program, script, modules)
        on_ranks = any(runs_on_ranks(program, load.call.module) for load in found)
        for cause, message, sure in _judged(
            program, _together(found), found[0], ranks, on_ranks=on_ranks
        ):
            if (found[0].call.node, cause) not in visited:
                visited.add((found[0].call.node, cause))
                call = found[0].call
                yield RULE.finding(call.module, call.node, message, cause=cause, confidence=sure)


def _judged(
    program: Program, alive: list[Load], largest: Load, ranks: int, *, on_ranks: bool
) -> Iterator[tuple[str, str, float]]:
    total = sum(load.number * load.times for load in alive)
    sum_of = " + ".join(
        f"{load.number}{times} (line {load.call.node.lineno})"
        for load in alive
        for times in (f" x {load.times}" if load.times > 1 else "",)
    )
    cpus, most = program.around.cpus, program.around.descriptors
    who = f"{total} workers each ({sum_of})"
    shared = f"share the {cpus} CPUs of this node."
    if total >= MANY:
        where = " in each rank" if on_ranks else ""
        message = f"The loaders of this script run {total} workers at once{where}: {sum_of}."
        yield RULE.cause, message, 0.65
    elif cpus is not None and largest.number * ranks > cpus:
        yield RULE.cause, f"{_count(ranks)} with {largest.number} workers each {shared}", 0.7
    elif (
        cpus is not None and total * ranks > 2 * cpus
    ):  # the loaders take turns: some workers sleep
        yield RULE.cause, f"{_count(ranks)} with {who} {shared}", 0.6
    needed = sum(item.number * item.times * _descriptors(program, item.call) for item in alive)
    if most is not None and needed + OWN_DESCRIPTORS > most:
        message = (
            f"{total} workers need some {needed} open files in the rank's process, which may have"
            f" {most}: {sum_of}."
        )
        yield "fd-exhaustion", message, 0.65


def _asks_a_type(module: Module, node: ast.AST) -> bool:
    """Whether the type of what callers give decides: `if isinstance(files, list)`."""
    holder = module.function_of(node)
    return holder is not None and any(
        isinstance(each.node, ast.Call)
        and last_name(each.node.func) == "isinstance"
        and bool(each.node.args)
        and last_name(each.node.args[0]) in holder.parameters
        for each in stated_around(module, node)
    )


def _count(ranks: int) -> str:
    return "1 rank" if ranks == 1 else f"{ranks} ranks"


def _descriptors(program: Program, call: Call) -> int:
    """Open files per worker, measured with torch 2.13: pipe, sentinel, and two pinned batches."""
    return 6 if argument_value(program, call, "pin_memory", 7) is True else 2


def _ranks(program: Program, script: Module, modules: list[Module]) -> int:
    """Ranks on one node: as told, else as the script spawns them, else 1."""
    if program.around.ranks is not None:
        return program.around.ranks
    for call in calls_to(program, "torch.multiprocessing.spawn"):
        number = argument_value(program, call, "nprocs", 2)
        if call.module in {script, *modules} and isinstance(number, int) and number > 0:
            return number
    return 1


def _spot(call: Call, place: Expression) -> ast.expr:
    """The number itself where it stands in the call, else the call."""
    return (
        place.node
        if place.module is call.module
        and any(word.value is place.node for word in call.node.keywords)
        else call.node
    )


class Load(NamedTuple):
    """A script's loader: its workers per rank, its copies, and whether its workers stay."""

    call: Call
    number: int
    times: int
    stays: bool


def _scripts(program: Program) -> list[tuple[Module, list[Module]]]:
    """The modules that no other imports, each followed by the modules that it imports."""
    targets = {
        module: [other for _statement, other in imported_modules(program, module)]
        for module in program.modules.values()
    }
    below = {other for others in targets.values() for other in others}
    found = []
    for module in program.modules.values():
        if module not in below:
            visited, left = dict.fromkeys([module]), [module]
            while left and len(visited) < 400:
                for other in targets[left.pop()]:
                    if other not in visited:
                        visited[other] = None
                        left.append(other)
            found.append((module, list(visited)))
    return found


def _loads(program: Program, modules: list[Module]) -> list[Load]:
    """The loaders with known workers that these modules make; the larger of two branches."""
    own = set(modules)
    calls = [call for call in loaders(program) if call.module in own]
    stay = _staying(program, modules) if calls else set()
    found = []
    for call in calls:
        function = call.module.function_of(call.node)
        times = _turns(program, call.module, call.node) * (
            _runs(program, function, own, 0) if function is not None else 1
        )
        stays = call.node in stay or _is_persistent(program, call)
        number = workers(program, call)
        if isinstance(number, int):
            found += [Load(call, number, min(times, MOST), stays)]
        elif function is not None:
            found += [
                Load(call, entry, 1, stays) for entry in _by_caller(program, call, function, own)
            ]
    remaining: list[Load] = []
    for item in sorted(found, key=lambda load: -load.number * load.times):
        if item.number * item.times > 0 and not any(
            item.call.module is other.call.module
            and item.call.node is not other.call.node
            and exclusive(item.call.module, item.call.node, other.call.node)
            for other in remaining
        ):
            remaining.append(item)
    return remaining


def _together(found: list[Load]) -> list[Load]:
    """The loaders whose workers run at once: all that stay, and the largest of the rest."""
    stay = [item for item in found if item.stays]
    rest = max(
        (item for item in found if not item.stays), key=lambda item: item.number, default=None
    )
    return [*stay, *([rest._replace(times=1)] if rest is not None else [])]


def _is_persistent(program: Program, call: Call) -> bool:
    place = resolved_argument(program, call, "persistent_workers")
    if place is None:
        return False
    value = program.value(place.module, place.node)
    return (
        value is True
        or isinstance(place.node, ast.Compare)
        or (isinstance(value, int) and value > 0)
    )


def _staying(program: Program, modules: list[Module]) -> set[ast.AST]:
    """Loaders whose iterators are held, or that are gone over inside the loop over another one."""
    return {loader for module in modules for loader in _staying_in(program, module)}


@remembered
def _staying_in(program: Program, module: Module) -> set[ast.AST]:
    found: set[ast.AST] = set()
    for call in module.of(ast.Call):
        if program.dotted(module, call.func) in HOLDS:
            found |= {item for part in call.args for item in loaders_in(program, module, part)}
    for loop in module.of(ast.For):
        outer = loaders_in(program, module, loop.iter)
        inner = _gone_over(program, module, loop.body) - outer if outer else set()
        if inner:
            found |= outer | inner
    return found


def _gone_over(program: Program, module: Module, body: list[ast.stmt]) -> set[ast.AST]:
    found: set[ast.AST] = set()
    for node in (item for statement in body for item in ast.walk(statement)):
        if isinstance(node, ast.For):
            found |= loaders_in(program, module, node.iter)
        elif isinstance(node, ast.Call) and (function := program.called(module, node)) is not None:
            for entry in reaches(program, function):
                found |= {
                    each
                    for loop in ast.walk(entry.node)
                    if isinstance(loop, ast.For)
                    for each in loaders_in(program, entry.module, loop.iter)
                }
    return found


def _turns(program: Program, module: Module, node: ast.AST) -> int:
    """How often a place runs within its function, by loops over constants."""
    count = 1
    for up in module.ancestors(node):
        heads = (
            [generator.iter for generator in up.generators]
            if isinstance(up, ast.ListComp | ast.DictComp | ast.GeneratorExp)
            else []
        )
        if isinstance(up, ast.For) and not isinstance(up.iter, ast.Name) and _keeps(module, node):
            heads = [up.iter]
        for head in heads:
            over = program.value(module, head)
            count *= len(over) if isinstance(over, list | tuple | dict | set) and over else 1
        if module.function_of_node.get(up) is not None:
            break
    return min(count, MOST)


def _keeps(module: Module, node: ast.AST) -> bool:
    """Whether a loop keeps what each turn makes, in a dictionary or list."""
    statement = module.statement_of(node)
    return isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript)


def _runs(program: Program, function: Function, own: set[Module], depth: int) -> int:
    """How often a script runs a function, loops of unknown length counted once."""
    known: dict[Function, int] = program.memory.setdefault("runs", {})
    if function in known or depth > MOST:
        return known.get(function, 0)
    known[function] = 0  # ends circles
    sites = [site for site in callers(program, function) if site.module in own]
    count = (
        1
        if (function.name in HOOKS and function.cls is not None) or function in _handed(program)
        else 0
    )
    for site in sites:
        holder = site.module.function_of(site.node)
        count += _turns(program, site.module, site.node) * (
            _runs(program, holder, own, depth + 1) if holder is not None else 1
        )
    if depth == 0:
        known.clear()  # another script may run it more or less often
    else:
        known[function] = count
    return min(count, MOST)


def _handed(program: Program) -> set[Function]:
    """Functions given to something that runs them: `mp.spawn(main, …)`, `Process(target=main)`."""
    known: set[Function] | None = program.memory.get("handed")
    if known is None:
        known = program.memory["handed"] = set()
        for module in program.modules.values():
            names = _names_of_functions(module)
            for call in module.of(ast.Call):
                for item in (*call.args, *(word.value for word in call.keywords)):
                    if (
                        isinstance(item, ast.Name)
                        and (item.id in names or module.star_imports)
                        and (function := program.function(program.dotted(module, item))) is not None
                        and function.cls is None
                    ):
                        known.add(function)
    return known


def _names_of_functions(module: Module) -> set[str]:
    """The names of a module that may stand for a function, not for what a call gave."""
    return {
        name
        for held in module.bindings.values()
        for name, found in held.items()
        if any(
            each.kind in {"def", "import"}
            or (each.kind == "value" and not isinstance(each.value, ast.Call | ast.Constant))
            for each in found
        )
    }


def _by_caller(program: Program, call: Call, function: Function, own: set[Module]) -> Iterator[int]:
    """The numbers that each caller gives for a parameter that is the number of workers."""
    place = resolved_argument(program, call, "num_workers", 5)
    if (
        place is None
        or not isinstance(place.node, ast.Name)
        or place.node.id not in function.parameters
    ):
        return
    position = function.parameters.index(place.node.id) - (1 if function.cls is not None else 0)
    for site in callers(program, function)[:MOST]:
        if site.module in own:
            item = argument(site.node, place.node.id, position) or function.default_of(
                place.node.id
            )
            value = _number_of(program, Expression(site.module, item)) if item is not None else 0
            holder = site.module.function_of(site.node)
            if isinstance(value, int) and (holder is None or _runs(program, holder, own, 0)):
                yield value


def _number_of(program: Program, place: Expression) -> object:
    """Return the number that an expression is, or `values.UNKNOWN`."""
    value = program.value(place.module, place.node)
    return value if not isinstance(value, bool) else int(value)
