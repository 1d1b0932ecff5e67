"""What differs in PBS and LSF scripts: the folder in which they begin, SLURM's variables, which
nobody sets there, how they write a time, and the cores that jsrun gives to a task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from trainprobe.sbatch import numbers
from trainprobe.sbatch.findings import Check, Finding
from trainprobe.sbatch.plan import Plan
from trainprobe.sbatch.rules.resources import too_few_cpus

FOREIGN, FOLDER, TIME = CHECKS = (
    Check("plan.environment"),
    Check("plan.paths"),
    Check("plan.time"),
)


def check(plan: Plan) -> Iterator[Finding]:
    yield from _variables_of_slurm(plan)
    if plan.script.scheduler.name == "PBS":
        yield from _folder(plan)
    yield from _cores(plan)
    yield _time(plan)


def _cores(plan: Plan) -> Iterator[Finding]:
    for launch in plan.launches:
        if launch.step is not None and "cpus-per-task" in launch.step.options:
            found = too_few_cpus(plan, launch)
            if found is not None:
                yield replace(found, fix=f"more cores: {launch.step_program} -c", line=launch.line)


def _variables_of_slurm(plan: Plan) -> Iterator[Finding]:
    own = {assigned.name for assigned in plan.script.assigned}
    for number, line in enumerate(plan.script.lines, start=1):
        if line.lstrip().startswith("#"):
            continue
        for match in re.finditer(r"\$\{?(SLURM_[A-Z_]+)(:?[-=])?", line):
            if match[1] in own or match[2]:
                continue
            name = plan.script.scheduler.name
            says = f"${match[1]} in line {number} is empty: {name} does not set SLURM's variables"
            yield FOREIGN.fail(says, f"the variable of {name}", number, match[1])
            return


def _folder(plan: Plan) -> Iterator[Finding]:
    """PBS starts a script in the home folder, and tells the other one in PBS_O_WORKDIR (qsub)."""
    changes = [run for run in plan.script.commands if run.words[0] in ("cd", "pushd")]
    for launch in plan.launches:
        relative = launch.script and not launch.script.startswith(("/", "$", "~"))
        above = any(run.line <= launch.line for run in changes)
        if relative and not above and not re.search(r"-(?:d|wdir|w)\b", plan.script.text[:5000]):
            says = (
                f"The script begins in the home folder, and {launch.script} (line {launch.line})"
                " is relative: cd $PBS_O_WORKDIR is missing"
            )
            yield FOLDER.likely(says, "cd $PBS_O_WORKDIR above the launch", launch.line)
            return


def _time(plan: Plan) -> Finding:
    value, line = plan.option("time"), plan.line_of("time")
    limit = numbers.minutes(value) if value else None
    if value and limit is None:
        return TIME.likely("The time limit cannot be read", "HH:MM:SS", line, value)
    if limit is None:
        return TIME.skip("The script sets no time limit")
    if limit < 5 and (plan.job.nodes > 1 or (plan.job.gpus or 0) > 1):
        return TIME.likely(f"The time limit is {limit:.3g} min", "HH:MM:SS", line, value or "")
    return TIME.ok(f"The time limit is {limit:.5g} min", value or "")
