"""How the script waits for what it starts: a launch in the background that nobody waits for, a loop
whose first pass never ends, an ssh that starts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.sbatch.findings import Check, Edit, Finding
from trainprobe.sbatch.launches import Launch
from trainprobe.sbatch.mpi_launchers import remote_words
from trainprobe.sbatch.plan import Plan

STEPS = Check("plan.steps")
CHECKS = (STEPS,)
_WAITING = {"wait", "sleep", "tail", "inotifywait"}


def check(plan: Plan) -> Iterator[Finding]:
    if not plan.launches:
        yield STEPS.skip("The script starts no training")
        return
    wrong = [*_nobody_waits(plan), *(found for one in plan.launches for found in _loop(one))]
    wrong += _ssh_alone(plan)
    yield from wrong or [STEPS.ok("The script lasts as long as what it starts")]


def in_background(launch: Launch) -> bool:
    step = launch.step
    return "&" in (launch.run.command.after, step.command.after if step else "")


def _nobody_waits(plan: Plan) -> Iterator[Finding]:
    """When the batch script ends, SLURM ends the job and kills its steps."""
    started = [launch for launch in plan.launches if in_background(launch)]
    if not started:
        return
    last = max(started, key=lambda launch: launch.line)
    later = [
        run
        for run in plan.script.commands
        if run.line >= last.line and run.command != last.run.command
    ]
    foreground = any(
        not in_background(launch) and launch.line > last.line for launch in plan.launches
    )
    waits = any(run.words[0] in _WAITING for run in later)
    steps = any(
        run.step not in (None, last.step) and run.line > last.run.command.last for run in later
    )
    if waits or foreground or steps or _called_as_function(last):
        return
    says = (
        f"Line {last.line} runs in the background, and nothing waits for it: the script ends at"
        f" once, and {plan.script.scheduler.name} then kills its processes"
    )
    end = len(plan.script.text.rstrip("\n").split("\n")) + 1
    edits = (Edit(end, "insert", "wait"),) if end <= len(plan.script.lines) else ()
    yield STEPS.fail(says, "wait, as the last line of the script", last.line, "&", edits)


def _called_as_function(launch: Launch) -> bool:
    command = launch.run.command
    return command.nested and not command.loop and not command.conditional


def _loop(launch: Launch) -> Iterator[Finding]:
    """A launcher for several nodes that a loop starts node by node, each in the foreground."""
    step = launch.step
    machines = launch.machines
    one_node = step is not None and launch.shape.nodes == 1
    if (
        not launch.in_loop
        or in_background(launch)
        or not machines
        or machines[0] < 2
        or not one_node
    ):
        return
    says = (
        f"The loop starts {launch.place} for one node after the other, in the foreground: the first"
        f" waits for {machines[0]} nodes, and the second never starts"
    )
    yield STEPS.fail(says, "end the line with &, and put wait below the loop", launch.line)


def _ssh_alone(plan: Plan) -> Iterator[Finding]:
    """`ssh HOST` without a command opens a shell there, which ends at once where nothing is typed;
    what follows runs on this host.
    """
    piped = {run.command.last for run in plan.script.commands if run.command.after == "|"}
    for run in plan.script.commands:
        words, command = run.words, run.command
        fed = command.line in piped or any("<" in word for word in command.words)
        alone = words[0].rpartition("/")[2] == "ssh" and run.step is None and not fed
        if not alone or remote_words(words) != () or command.after != "\n":
            continue
        here = [
            launch
            for launch in plan.launches
            if launch.line > run.line and launch.step is None and command.loop
        ]
        if here and here[0].run.command.loop:
            says = (
                f"ssh in line {run.line} gets no command, and {here[0].place} runs on this host in"
                " every pass of the loop, not on the others"
            )
            fix = "the command in the same line as ssh, or \\ at the line's end"
            yield STEPS.fail(says, fix, run.line, " ".join(words)[:100])
            return
