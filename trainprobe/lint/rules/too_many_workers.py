"""More DataLoader workers than a node can run: all CPUs for each rank, or a number that no node has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.environment import counts_all_cpus
from trainprobe.lint.loaders import loaders
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import Call, Place, calls_of, given, runs_on_ranks

ID = "too-many-workers"
CAUSE = "cpu-oversubscribed"
MANY = 64
"""Workers of one rank. Nodes have 8 to 32 CPUs for each GPU; each worker is a process with memory, descriptors and threads of its own."""
WHY = "Workers start once for each rank and each loader. Together they need more CPUs, memory and open files than the node has, and each step waits for them."
ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")


def find(program: Program) -> Iterator[Finding]:
    named: list[tuple[Call, str, int | None]] = [(call, "num_workers", 5) for call in loaders(program)]
    named += [(call, "dataloader_num_workers", None) for call in calls_of(program, *ARGUMENTS)]
    for call, word, position in named:
        place = given(program, call.module, call.node, word, position)
        if place is None:
            continue
        value = program.value(place.module, place.node)
        if isinstance(value, int) and value >= MANY:
            says = f"{word} is {value}: as many worker processes for each rank."
            yield _finding(program, call, _spot(call, place), says)
        elif counts_all_cpus(program, place) and runs_on_ranks(program, call.module):
            says = f"{word} is the number of all CPUs ({place.module.source_of(place.node)}), and every rank of the node starts that many workers."
            yield _finding(program, call, _spot(call, place), says)


def _spot(call: Call, place: Place) -> ast.expr:
    """The number itself where it stands in the call, else the call."""
    return place.node if place.module is call.module and any(word.value is place.node for word in call.node.keywords) else call.node


def _finding(program: Program, call: Call, spot: ast.expr, says: str) -> Finding:
    fix = Fix(
        "Divide the CPUs of the node among its ranks: len(os.sched_getaffinity(0)) // int(os.environ.get('LOCAL_WORLD_SIZE', 1)), less one for the rank itself."
    )
    return program.finding(ID, CAUSE, call.module, spot, says=says, why=WHY, confidence=0.7, fix=fix)


RULE = Rule(ID, CAUSE, "More workers than CPUs", WHY, 0.7, find)
