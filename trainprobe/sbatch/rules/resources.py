"""CPUs and memory: enough for each rank and its workers, not more than the nodes have, and
inherited by srun.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from trainprobe.sbatch import numbers
from trainprobe.sbatch.findings import Finding
from trainprobe.sbatch.launches import Launch
from trainprobe.sbatch.plan import Plan, found, ranks_on_node, skipped

CPUS, MEMORY = "plan.cpus", "plan.mem"
RANK_MB, WORKER_MB = (
    2048.0,
    256.0,
)  # a rank with torch and CUDA loaded holds 2-3 GB; a loader's worker some hundred MB of its own
_WORKERS = re.compile(
    r"--?(?:[a-z]+[._-])*(?:num[_-]?workers|dataloader[_-]num[_-]workers|n[_-]?workers|workers)",
    re.IGNORECASE,
)


def check(plan: Plan) -> Iterator[Finding]:
    yield from _cpus(plan)
    yield from _memory(plan)


def workers(plan: Plan, launch: Launch) -> tuple[int, str]:
    """The loader's workers of one rank and where that is said: an argument of the script, or its
    own text. (0, "") where it is not known.
    """
    words = launch.arguments
    for place, word in enumerate(words):
        name, has_value, value = word.partition("=")
        if _WORKERS.fullmatch(name if name.startswith("-") else f"--{name}"):
            told = numbers.whole(
                value if has_value else words[place + 1] if place + 1 < len(words) else ""
            )
            if told is not None:
                return told, f"line {launch.line}"
    told = plan.here.programs.get(launch.script, {}).get("workers")
    return (
        (told, launch.script.rpartition("/")[2])
        if isinstance(told, int) and 0 < told < 10_000
        else (0, "")
    )


def _cpus(plan: Plan) -> Iterator[Finding]:
    if not plan.launches:
        yield skipped(CPUS, "No launch was found, so the CPUs were not held against what it needs")
        return
    wrong = [
        one for launch in plan.launches[:1] for one in (_too_few(plan, launch),) if one is not None
    ]
    wrong += [one for one in (_more_than_there_are(plan), _not_inherited(plan)) if one is not None]
    yield from wrong
    if not wrong:
        cpus = plan.job.cpus
        says = (
            f"{cpus} CPUs for each task"
            if cpus
            else (
                "All CPUs of each node"
                if plan.exclusive
                else "One CPU for each task, and nothing says that more are needed"
            )
        )
        yield found(CPUS, "ok", says, value=str(cpus or ""))


def _too_few(plan: Plan, launch: Launch) -> Finding | None:
    ranks = ranks_on_node(launch)
    if ranks is None or (plan.exclusive and plan.job.cpus is None):
        return None
    tasks = launch.shape.tasks_on_node
    if launch.program != "python" and tasks > 1:
        return None  # too many launchers, which is said elsewhere
    if any(
        name in plan.options for name in ("mincpus", "cores-per-socket", "hint", "extra-node-info")
    ):
        return None
    cpus = launch.shape.cpus or (plan.job.tasks_on_node if launch.step is None else 1)
    cpus = max(cpus, plan.job.cpus or 1) if launch.step is None else cpus
    each = cpus / ranks if launch.program != "python" else float(cpus)
    number, where = workers(plan, launch)
    threads = numbers.whole(launch.done.environment().get("OMP_NUM_THREADS", "")) or 1
    need = max(number + 1, threads, 2 if launch.shape.gpus else 1)
    if each >= need:
        return None
    per = ranks if launch.program != "python" else 1
    right = math.ceil(need * per)
    most = max((node.cpus or 0 for node in plan.nodes), default=0) // max(1, tasks)
    right = min(right, most) if most >= per else right
    said = f"{cpus} {'CPU' if cpus == 1 else 'CPUs'} for each task" + (
        "" if plan.job.cpus or launch.shape.cpus else " (no --cpus-per-task)"
    )
    why = (
        f"{number} loader workers ({where})"
        if number + 1 >= max(threads, 2) and number
        else f"OMP_NUM_THREADS={threads}"
        if threads > 1
        else "its own threads"
    )
    says = (
        f"{said}, for {ranks if launch.program != 'python' else 1}"
        f" {'rank' if per == 1 else 'ranks'} with {why} each: {each:.3g} CPUs a rank, and {need}"
        " are needed"
    )
    if right <= cpus:
        fix = f"fewer workers for each rank: {max(0, int(each) - 1)} fit"
        return found(CPUS, "fail", says, fix, launch.line, str(cpus))
    step_has = launch.step is not None and "cpus-per-task" in launch.step.options
    edits = (
        plan.swap(
            launch, r"(?:--cpus-per-task(?:=|\s+)|(?<!\S)-c\s*)\S+", f"--cpus-per-task={right}"
        )
        if step_has
        else plan.setting("cpus-per-task", str(right))
    )
    return found(
        CPUS,
        "fail",
        says,
        f"#SBATCH --cpus-per-task={right}",
        plan.line_of("cpus-per-task") or launch.line,
        str(cpus),
        edits,
    )


def _more_than_there_are(plan: Plan) -> Finding | None:
    known = [node.cpus for node in plan.nodes if node.cpus]
    if not known:
        return None
    asked = (plan.job.cpus or 1) * plan.job.tasks_on_node
    if asked <= max(known):
        return None
    right = max(1, max(known) // plan.job.tasks_on_node)
    says = (
        f"{asked} CPUs are asked for on each node, and the largest node there has {max(known)}:"
        " sbatch refuses the job"
    )
    line = plan.line_of("cpus-per-task", "ntasks-per-node", "ntasks")
    edits = plan.setting("cpus-per-task", str(right)) if "cpus-per-task" in plan.options else ()
    return found(CPUS, "fail", says, f"--cpus-per-task={right}", line, str(asked), edits)


def _not_inherited(plan: Plan) -> Finding | None:
    """Srun of 22.05 to 23.02 does not take --cpus-per-task from sbatch (changelogs of 22.05 and
    23.11).
    """
    version = plan.site.version
    steps = [
        one
        for one in plan.launches
        if one.step is not None
        and "cpus-per-task" not in one.step.options
        and "exact" not in one.step.options
    ]
    if (
        version is None
        or not (22, 5) <= version < (23, 11)
        or not steps
        or "cpus-per-task" not in plan.options
        or (plan.job.cpus or 1) < 2
    ):
        return None
    if (
        any("SRUN_CPUS_PER_TASK" in one.done.environment() for one in steps)
        or "none" in plan.site.config.get("TaskPlugin", "")
        or plan.exclusive
    ):
        return None
    line = steps[0].step.line if steps[0].step else 0
    says = (
        f"srun of SLURM {version[0]}.{version[1]:02d} does not take --cpus-per-task from sbatch, so"
        f" the tasks of line {line} get one CPU each, not {plan.job.cpus}"
    )
    export = "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"
    return found(CPUS, "fail", says, export, line, "1", plan.before_launches(export))


def _memory(plan: Plan) -> Iterator[Finding]:
    asked, how = _asked_memory(plan)
    sizes = [node.memory for node in plan.nodes if node.memory]
    largest = max(sizes, default=None)
    if asked is not None and largest is not None and largest < asked < float("inf"):
        line = plan.line_of("mem", "mem-per-cpu", "mem-per-gpu")
        says = (
            f"{_gb(asked)} are asked for on each node ({how}), and the largest node there has"
            f" {_gb(largest)}: sbatch refuses the job"
        )
        edits = plan.setting("mem", "0") if "mem" in plan.options else ()
        yield found(
            MEMORY, "fail", says, "--mem=0 asks for all of a node", line, f"{asked:.0f}", edits
        )
        return
    if asked is None:
        yield skipped(MEMORY, how)
        return
    launch = next(iter(plan.launches), None)
    ranks = (ranks_on_node(launch) or 1) if launch is not None else 1
    number = workers(plan, launch)[0] if launch is not None else 0
    need = (
        ranks * (RANK_MB + number * WORKER_MB)
        if launch is not None and launch.shape.gpus
        else ranks * (512.0 + number * WORKER_MB)
    )
    if asked < need and launch is not None:
        says = (
            f"{_gb(asked)} on each node ({how}) for {ranks} ranks with {number} workers each, which"
            f" need {_gb(need)} before any data is read"
        )
        right = f"{math.ceil(need / 1024)}G"
        edits = (
            plan.setting("mem", right)
            if "mem" in plan.options
            or not any(one in plan.options for one in ("mem-per-cpu", "mem-per-gpu"))
            else ()
        )
        yield found(
            MEMORY,
            "fail",
            says,
            f"#SBATCH --mem={right}, or --mem=0 for all of a node",
            plan.line_of("mem", "mem-per-cpu", "mem-per-gpu"),
            f"{asked:.0f}",
            edits,
        )
        return
    yield found(
        MEMORY,
        "ok",
        (
            f"{_gb(asked)} on each node ({how})"
            if asked != float("inf")
            else f"All memory of each node ({how})"
        ),
        value=f"{asked:.0f}",
    )


def _gb(size: float) -> str:
    return f"{size / 1024:.3g} GB" if size >= 1024 else f"{size:.0f} MB"


def _asked_memory(plan: Plan) -> tuple[float | None, str]:
    """The memory of one node in MB, and where it is said; None with the reason where nobody can
    know.
    """
    options, job = plan.options, plan.job
    cpus = (job.cpus or 1) * job.tasks_on_node
    if "mem" in options:
        size = numbers.megabytes(options["mem"].value)
        return (float("inf") if size == 0 else size), "--mem"
    if "mem-per-cpu" in options:
        size = numbers.megabytes(options["mem-per-cpu"].value)
        return (size * cpus if size is not None else None), "--mem-per-cpu"
    if "mem-per-gpu" in options:
        size = numbers.megabytes(options["mem-per-gpu"].value)
        return (size * job.gpus if size is not None and job.gpus else None), "--mem-per-gpu"
    selects = plan.site.config.get("SelectTypeParameters", "")
    if selects and "MEM" not in selects.upper():
        return (
            None,
            "SLURM does not hand out memory at this site (SelectTypeParameters), so it limits none",
        )
    partition = plan.partition
    per_cpu = (partition.mem_per_cpu if partition else None) or numbers.megabytes(
        plan.site.config.get("DefMemPerCPU", "")
    )
    per_node = (partition.mem_per_node if partition else None) or numbers.megabytes(
        plan.site.config.get("DefMemPerNode", "")
    )
    if per_node:
        return per_node, "DefMemPerNode of the site"
    if per_cpu:
        there = max((node.cpus or 0 for node in plan.nodes), default=0) if plan.exclusive else 0
        return per_cpu * max(cpus, there), f"DefMemPerCPU of the site, {max(cpus, there)} CPUs"
    return None, "No memory is asked for, and the site's default is not known"
