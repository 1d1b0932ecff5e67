"""A thread for every CPU of the node, in every rank."""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.lint.calls import calls_to
from trainprobe.lint.environment import counts_all_cpus, settings
from trainprobe.lint.expressions import Expression, resolved_argument
from trainprobe.lint.jobs import runs_on_ranks
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.program import Program
from trainprobe.lint.rewrites import shared_cpus

RULE = Rule(
    id="threads-per-rank",
    cause="cpu-oversubscribed",
    title="All CPUs for each rank",
    why=(
        "Every rank of the node starts as many threads as the node has CPUs. They compete, and each"
        " step waits for the slowest."
    ),
    fix=(
        "Divide the CPUs among the ranks of the node: os.cpu_count() //"
        " int(os.environ.get('LOCAL_WORLD_SIZE', 1))."
    ),
    confidence=0.45,  # the one in code of others was wrong
)


VARIABLES = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"}


def find(program: Program) -> Iterator[Finding]:
    for call in calls_to(program, "torch.set_num_threads"):
        place = resolved_argument(program, call, "int", 0)
        if (
            place is not None
            and counts_all_cpus(program, place)
            and runs_on_ranks(program, call.module)
        ):
            message = "Each rank uses as many threads as the machine has CPUs."
            yield RULE.finding(call.module, call.node, message, edits=shared_cpus(program, place))
    for module in program.examined:
        for setting in settings(program, module):
            place = (
                Expression(module, setting.value)
                if setting.variable in VARIABLES and setting.value is not None
                else None
            )
            if (
                place is not None
                and counts_all_cpus(program, place)
                and runs_on_ranks(program, module)
            ):
                message = f"{setting.variable} is set to the number of all CPUs in each rank."
                yield RULE.finding(module, setting.node, message, edits=shared_cpus(program, place))
