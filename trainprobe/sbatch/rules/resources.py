"""CPUs and memory: enough for each rank and its workers, not more than the nodes have, and
inherited by srun.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from trainprobe.sbatch import numbers
from trainprobe.sbatch.findings import Check, Finding
from trainprobe.sbatch.launches import Launch
from trainprobe.sbatch.numbers import counted
from trainprobe.sbatch.plan import Plan, ranks_on_node

CPUS, MEMORY = CHECKS = Check("plan.cpus"), Check("plan.mem")
# A rank with torch and CUDA loaded holds 2-3 GB; a loader's worker adds some hundred MB.
RANK_MB, CPU_RANK_MB, WORKER_MB = 2048.0, 512.0, 256.0
_WORKERS = re.compile(
    r"(?:--?)?(?:[a-z]+[._-])*(?:num[_-]?workers|dataloader[_-]num[_-]workers|n[_-]?workers|workers)",
    re.IGNORECASE,
)


def check(plan: Plan) -> Iterator[Finding]:
    yield from _cpus(plan)
    yield _memory(plan)


def _workers(plan: Plan, launch: Launch) -> tuple[int, str]:
    """The loader's workers of one rank and the source: an argument of the script, or its own text.
    (0, "") where neither shows them.
    """
    for name, value in launch.named_values:
        if _WORKERS.fullmatch(name) and (count := numbers.whole(value)) is not None:
            return count, f"line {launch.line}"
    count = plan.about(launch).get("workers")
    if isinstance(count, int) and 0 < count < 10_000:
        return count, launch.script.rpartition("/")[2]
    return 0, ""


def _cpus(plan: Plan) -> Iterator[Finding]:
    if not plan.launches:
        yield CPUS.skip("The script starts no training, so its need for CPUs is not known")
        return
    found = (too_few_cpus(plan, plan.launches[0]), _more_than_a_node(plan), _not_inherited(plan))
    wrong = [finding for finding in found if finding is not None]
    yield from wrong
    if not wrong:
        cpus = plan.job.cpus
        if cpus:
            says = f"{cpus} CPUs for each task"
        elif plan.exclusive:
            says = "All CPUs of each node"
        else:
            says = "One CPU for each task; nothing shows that it needs more"
        yield CPUS.ok(says, str(cpus or ""))


def too_few_cpus(plan: Plan, launch: Launch) -> Finding | None:
    """Return what is wrong with the CPUs of a rank, None where they suffice or are not known."""
    ranks, tasks = ranks_on_node(launch), launch.shape.tasks_on_node
    plain = launch.program == "python"
    if ranks is None or (plan.exclusive and plan.job.cpus is None) or (not plain and tasks > 1):
        return None  # rules/tasks.py reports several launchers on a node
    if any(
        name in plan.options for name in ("mincpus", "cores-per-socket", "hint", "extra-node-info")
    ):
        return None
    if launch.step is None:
        cpus = max(launch.shape.cpus or plan.job.tasks_on_node, plan.job.cpus or 1)
    else:
        cpus = launch.shape.cpus or 1
    per_task = 1 if plain else ranks
    each = cpus / per_task
    workers, source = _workers(plan, launch)
    threads = numbers.whole(launch.run.environment().get("OMP_NUM_THREADS", "")) or 1
    need = max(workers + 1, threads, 2 if launch.shape.gpus else 1)
    if each >= max(workers, threads, min(need, 2)):
        return None  # a rank mostly waits for its GPU while its workers run
    right = need * per_task
    most = max((node.cpus or 0 for node in plan.nodes), default=0) // max(1, tasks)
    right = min(right, most) if most >= per_task else right
    if workers and workers + 1 >= max(threads, 2):
        reason = f"{workers} loader workers ({source})"
    else:
        reason = f"OMP_NUM_THREADS={threads}" if threads > 1 else "its own threads"
    unset = "" if plan.job.cpus or launch.shape.cpus else " (no --cpus-per-task)"
    says = (
        f"{counted(cpus, 'CPU')} for each task{unset}, for {counted(per_task, 'rank')} with"
        f" {reason} each: a rank gets {each:.3g} CPUs and needs {need}"
    )
    known = bool(plan.nodes) or plan.job.cpus is not None or launch.shape.cpus is not None
    made = CPUS.likely if known and each * 2 <= max(workers + 1, threads) else CPUS.warn
    if not known:
        says = (
            f"The job has no --cpus-per-task: unless the site gives CPUs with each GPU, its"
            f" {counted(per_task, 'rank')} share {counted(cpus, 'CPU')}, with {reason}"
        )
    if right <= cpus:
        fix = f"fewer workers for each rank: {max(0, int(each) - 1)} fit"
        return made(says, fix, launch.line, str(cpus))
    if launch.step is not None and "cpus-per-task" in launch.step.options:
        pattern = r"(?:--cpus-per-task(?:=|\s+)|(?<!\S)-c\s*)\S+"
        edits = plan.swap(launch, pattern, f"--cpus-per-task={right}")
    else:
        edits = plan.setting("cpus-per-task", str(right))
    line = plan.line_of("cpus-per-task") or launch.line
    return made(says, f"#SBATCH --cpus-per-task={right}", line, str(cpus), edits)


def _more_than_a_node(plan: Plan) -> Finding | None:
    largest = max((node.cpus or 0 for node in plan.nodes), default=0)
    requested = (plan.job.cpus or 1) * plan.job.tasks_on_node
    if not largest or requested <= largest:
        return None
    right = str(max(1, largest // plan.job.tasks_on_node))
    says = (
        f"The job requests {requested} CPUs on each node, and the largest node has {largest}:"
        " sbatch refuses it"
    )
    line = plan.line_of("cpus-per-task", "ntasks-per-node", "ntasks")
    edits = plan.setting("cpus-per-task", right) if "cpus-per-task" in plan.options else ()
    return CPUS.fail(says, f"--cpus-per-task={right}", line, str(requested), edits)


def _not_inherited(plan: Plan) -> Finding | None:
    """Srun of 22.05 to 23.02 does not take --cpus-per-task from sbatch (changelogs of 22.05 and
    23.11).
    """
    version = plan.site.version
    steps = [
        launch
        for launch in plan.launches
        if launch.step is not None and not {"cpus-per-task", "exact"} & launch.step.options.keys()
    ]
    if (version and not (22, 5) <= version < (23, 11)) or not steps or plan.exclusive:
        return None
    if (
        "cpus-per-task" not in plan.options
        or (plan.job.cpus or 1) < 2
        or any("SRUN_CPUS_PER_TASK" in launch.run.environment() for launch in steps)
        or "none" in plan.site.config.get("TaskPlugin", "")
    ):
        return None
    line = steps[0].step.command.line if steps[0].step else 0
    export = "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"
    if version is None:
        says = (
            f"srun of SLURM 22.05 to 23.02 does not take --cpus-per-task from sbatch: if the site"
            f" runs one of them, the tasks of line {line} get one CPU each, not {plan.job.cpus}"
        )
        return CPUS.warn(says, export, line, "1", plan.before_launches(export))
    says = (
        f"srun of SLURM {version[0]}.{version[1]:02d} does not take --cpus-per-task from sbatch:"
        f" the tasks of line {line} get one CPU each, not {plan.job.cpus}"
    )
    return CPUS.fail(says, export, line, "1", plan.before_launches(export))


def _memory(plan: Plan) -> Finding:
    requested, source = _requested_memory(plan)
    if requested is None:
        return MEMORY.skip(source)
    largest = max((node.memory for node in plan.nodes if node.memory), default=math.inf)
    line = plan.line_of("mem", "mem-per-cpu", "mem-per-gpu")
    if largest < requested < math.inf:
        says = (
            f"The job requests {_gb(requested)} on each node ({source}), and the largest node has"
            f" {_gb(largest)}: sbatch refuses it"
        )
        edits = plan.setting("mem", "0") if "mem" in plan.options else ()
        return MEMORY.fail(says, "--mem=0 requests all of a node", line, f"{requested:.0f}", edits)
    launch = next(iter(plan.launches), None)
    if launch is not None:
        ranks, workers = ranks_on_node(launch) or 1, _workers(plan, launch)[0]
        need = ranks * ((RANK_MB if launch.shape.gpus else CPU_RANK_MB) + workers * WORKER_MB)
        if requested < need:
            says = (
                f"The job requests {_gb(requested)} on each node ({source}); {ranks} ranks with"
                f" {workers} workers each need {_gb(need)} before they read any data"
            )
            right = f"{math.ceil(need / 1024)}G"
            by_other = not {"mem-per-cpu", "mem-per-gpu"}.isdisjoint(plan.options)
            edits = () if by_other and "mem" not in plan.options else plan.setting("mem", right)
            fix = f"#SBATCH --mem={right}, or --mem=0 for all of a node"
            return MEMORY.likely(says, fix, line, f"{requested:.0f}", edits)
    size = "All memory" if requested == math.inf else _gb(requested)
    return MEMORY.ok(f"{size} of each node ({source})", f"{requested:.0f}")


def _gb(size: float) -> str:
    return f"{size / 1024:.3g} GB" if size >= 1024 else f"{size:.0f} MB"


def _requested_memory(plan: Plan) -> tuple[float | None, str]:
    """The memory of one node in MB, and what sets it; None with the reason where it is unknown."""
    config, job, partition = plan.site.config, plan.job, plan.partition
    cpus = (job.cpus or 1) * job.tasks_on_node
    for name, factor in (("mem", 1), ("mem-per-cpu", cpus), ("mem-per-gpu", job.gpus)):
        value = plan.option(name)
        if value is not None:
            size = numbers.megabytes(value)
            if size is None or not factor:
                return None, f"--{name} gives no amount for a node"
            return math.inf if name == "mem" and size == 0 else size * factor, f"--{name}"
    selects = config.get("SelectTypeParameters", "")
    if selects and "MEM" not in selects.upper():
        return None, "SLURM does not limit memory at this site (SelectTypeParameters)"
    per_node = (partition.mem_per_node if partition else None) or numbers.megabytes(
        config.get("DefMemPerNode", "")
    )
    if per_node:
        return per_node, "DefMemPerNode of the site"
    per_cpu = (partition.mem_per_cpu if partition else None) or numbers.megabytes(
        config.get("DefMemPerCPU", "")
    )
    if per_cpu:
        whole = max((node.cpus or 0 for node in plan.nodes), default=0) if plan.exclusive else 0
        return per_cpu * max(cpus, whole), f"DefMemPerCPU of the site, {max(cpus, whole)} CPUs"
    return None, "The job requests no memory, and the site's default is not known"
