"""A thread for every CPU of the node, in every rank."""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.lint.environment import counts_all_cpus, settings
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.program import Program
from trainprobe.lint.rewrites import shared_cpus
from trainprobe.lint.scenes import Place, calls_of, given, runs_on_ranks

ID = "threads-per-rank"
CAUSE = "cpu-oversubscribed"
WHY = "Every rank of the node starts as many threads as the node has CPUs; they take turns, and each step waits for the slowest."
FIX = Fix("Divide the CPUs among the ranks of the node: os.cpu_count() // int(os.environ.get('LOCAL_WORLD_SIZE', 1)).")
VARIABLES = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"}


def find(program: Program) -> Iterator[Finding]:
    for call in calls_of(program, "torch.set_num_threads"):
        place = given(program, call.module, call.node, "int", 0)
        if place is not None and counts_all_cpus(program, place) and runs_on_ranks(program, call.module):
            says = "Each rank uses as many threads as the machine has CPUs."
            yield program.finding(ID, CAUSE, call.module, call.node, says=says, why=WHY, confidence=0.75, fix=_fix(program, place))
    for module in program.examined:
        for one in settings(program, module):
            place = Place(module, one.value) if one.variable in VARIABLES and one.value is not None else None
            if place is not None and counts_all_cpus(program, place) and runs_on_ranks(program, module):
                says = f"{one.variable} is the number of all CPUs, in each rank."
                yield program.finding(ID, CAUSE, module, one.node, says=says, why=WHY, confidence=0.75, fix=_fix(program, place))


def _fix(program: Program, place: Place) -> Fix:
    edits = shared_cpus(program, place)
    return Fix(FIX.says, edits, safe=True) if edits is not None else FIX


RULE = Rule(ID, CAUSE, "All CPUs for each rank", WHY, 0.75, find)
