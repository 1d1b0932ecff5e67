"""More DataLoader workers than a node can run: all CPUs for each rank, or a number that no node has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.environment import counts_all_cpus
from trainprobe.lint.loaders import loaders
from trainprobe.lint.model import Edit, Finding, Fix, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.rewrites import shared_cpus
from trainprobe.lint.scenes import Call, Place, calls_of, given, runs_on_ranks
from trainprobe.lint.worker_counts import Load, loads, scripts, together

ID = "too-many-workers"
CAUSE = "cpu-oversubscribed"
MANY = 64
"""Workers of one rank. Nodes have 8 to 32 CPUs for each GPU; each worker is a process with memory, descriptors and threads of its own."""
WHY = "Workers start once for each rank and each loader. Together they need more CPUs, memory and open files than the node has, and each step waits for them."
OWN_DESCRIPTORS = 12
ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")


def find(program: Program) -> Iterator[Finding]:
    named: list[tuple[Call, str, int | None]] = [(call, "num_workers", 5) for call in loaders(program)]
    named += [(call, "dataloader_num_workers", None) for call in calls_of(program, *ARGUMENTS)]
    told: set[ast.AST] = set()
    for call, word, position in named:
        place = given(program, call.module, call.node, word, position)
        if place is None:
            continue
        value = program.value(place.module, place.node)
        if isinstance(value, int) and value >= MANY:
            says = f"{word} is {value}: as many worker processes for each rank."
            yield _finding(program, call, _spot(call, place), says)
            told.add(call.node)
        elif counts_all_cpus(program, place) and runs_on_ranks(program, call.module):
            says = f"{word} is the number of all CPUs ({place.module.source_of(place.node)}), and every rank of the node starts that many workers."
            yield _finding(program, call, _spot(call, place), says, shared_cpus(program, place))
            told.add(call.node)
    yield from _all_together(program, told)


def _all_together(program: Program, told: set[ast.AST]) -> Iterator[Finding]:
    """All loaders of a script, held against what one rank, and the node where it is known, can have."""
    seen: set[tuple[ast.AST, str]] = set()
    for script, modules in scripts(program):
        found = loads(program, modules)
        if not found or told.intersection(one.call.node for one in found):
            continue
        ranks = _ranks(program, script, modules)
        for cause, says, sure in _judged(program, together(found), found[0], ranks):
            if (found[0].call.node, cause) not in seen:
                seen.add((found[0].call.node, cause))
                yield program.finding(ID, cause, found[0].call.module, found[0].call.node, says=says, why=WHY, confidence=sure, fix=_fix())


def _judged(program: Program, alive: list[Load], largest: Load, ranks: int) -> Iterator[tuple[str, str, float]]:
    total = sum(one.number * one.times for one in alive)
    sum_of = " + ".join(f"{one.number}{f' x {one.times}' if one.times > 1 else ''} (line {one.call.node.lineno})" for one in alive)
    cpus, most = program.around.cpus, program.around.descriptors
    if total >= MANY:
        yield CAUSE, f"The loaders of this script have {total} workers at once for each rank: {sum_of}.", 0.65
    elif cpus is not None and largest.number * ranks > cpus:
        yield CAUSE, f"{_count(ranks)} with {largest.number} workers each share the {cpus} CPUs of this node.", 0.7
    elif cpus is not None and total * ranks > 2 * cpus:  # the loaders take turns, so some of the workers sleep
        yield CAUSE, f"{_count(ranks)} with {total} workers each ({sum_of}) share the {cpus} CPUs of this node.", 0.6
    needed = sum(one.number * one.times * _descriptors(program, one.call) for one in alive)
    if most is not None and needed + OWN_DESCRIPTORS > most:
        yield "fd-exhaustion", f"{total} workers need some {needed} open files in the rank's process, which may have {most}: {sum_of}.", 0.65


def _count(ranks: int) -> str:
    return "1 rank" if ranks == 1 else f"{ranks} ranks"


def _descriptors(program: Program, call: Call) -> int:
    """Open files of the rank's process for one worker, as measured with torch 2.13: a pipe and a sentinel, and with pinning two batches of two tensors."""
    pins = given(program, call.module, call.node, "pin_memory", 7)
    return 6 if pins is not None and program.value(pins.module, pins.node) is True else 2


def _ranks(program: Program, script: Module, modules: list[Module]) -> int:
    """Ranks on one node: as told, else as the script spawns them, else 1."""
    if program.around.ranks is not None:
        return program.around.ranks
    for call in calls_of(program, "torch.multiprocessing.spawn"):
        place = given(program, call.module, call.node, "nprocs", 2)
        number = program.value(place.module, place.node) if place is not None and call.module in {script, *modules} else None
        if isinstance(number, int) and number > 0:
            return number
    return 1


def _spot(call: Call, place: Place) -> ast.expr:
    """The number itself where it stands in the call, else the call."""
    return place.node if place.module is call.module and any(word.value is place.node for word in call.node.keywords) else call.node


def _finding(program: Program, call: Call, spot: ast.expr, says: str, edits: tuple[Edit, ...] | None = None) -> Finding:
    return program.finding(ID, CAUSE, call.module, spot, says=says, why=WHY, confidence=0.7, fix=_fix(edits))


def _fix(edits: tuple[Edit, ...] | None = None) -> Fix:
    return Fix(
        "Divide the CPUs of the node among its ranks: len(os.sched_getaffinity(0)) // int(os.environ.get('LOCAL_WORLD_SIZE', 1)), less one for the rank itself.",
        edits or (),
        safe=bool(edits),
    )


RULE = Rule(ID, CAUSE, "More workers than CPUs", WHY, 0.7, find, also=("fd-exhaustion",))
