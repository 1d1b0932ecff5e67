"""Tasks, launchers and GPUs agree: one launcher on each node with torchrun, one task for each
GPU with plain Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.sbatch.findings import Check, Edit, Edits, Finding
from trainprobe.sbatch.launches import Launch
from trainprobe.sbatch.layout import shape
from trainprobe.sbatch.numbers import counted
from trainprobe.sbatch.plan import Plan
from trainprobe.sbatch.rules.script_and_site import SITE

TASKS, GPUS = CHECKS = Check("plan.tasks"), Check("plan.gpus")
NPROC = r"--nproc[-_]per[-_]node(?:=|\s+)(?:\"[^\"]*\"|\S+)"
NNODES = r"--nnodes(?:=|\s+)(?:\"[^\"]*\"|\S+)"


def check(plan: Plan) -> Iterator[Finding]:
    if not plan.launches:
        says = (
            "The script starts no launcher and no Python program: tasks and GPUs are not compared"
        )
        yield TASKS.skip(says)
        yield GPUS.skip("The script starts no training")
        return
    wrong: list[Finding] = []
    for rule in (_tasks, _node_counts):
        wrong += [finding for launch in plan.launches for finding in rule(plan, launch)]
    for launch in plan.launches:
        wrong += [*_gpus_and_ranks(plan, launch), *_visible_gpus(plan, launch)]
        wrong += _gpu_of_each_task(plan, launch)
    wrong += _gpus_of_site(plan)
    yield from wrong
    bad = {finding.id for finding in wrong}
    if TASKS.id not in bad:
        yield TASKS.ok("; ".join(dict.fromkeys(_described(launch) for launch in plan.launches)))
    if GPUS.id not in bad:
        gpus = next(
            (gpus for launch in plan.launches if (gpus := launch.shape.gpus) is not None), None
        )
        yield (
            GPUS.ok(f"No rank shares one of the {gpus} GPUs of a node", str(gpus))
            if gpus is not None
            else GPUS.skip("The job requests no GPU")
        )


def _described(launch: Launch) -> str:
    nodes = counted(launch.shape.nodes, "node")
    if launch.program == "python":
        return f"{counted(launch.shape.all_tasks, 'task')} of Python on {nodes}"
    each = launch.per_node if launch.per_node is not None else "an unknown number of"
    return f"{launch.program} on {nodes} with {each} ranks each"


def _tasks(plan: Plan, launch: Launch) -> Iterator[Finding]:
    """Where and how often a launcher is started."""
    line, several = launch.line, launch.shape.tasks_on_node
    if launch.program == "python":
        yield from _python_tasks(plan, launch)
    elif launch.step is None:
        yield from _launcher_without_step(plan, launch)
    elif several > 1 and launch.counted:
        says = (
            f"{launch.step_program} starts {several} {launch.program} on each node (line {line}),"
            " and each starts its own ranks: it must be one on each node"
        )
        fix, edits = "one task on each node: --ntasks-per-node=1", _one_task(plan, launch, several)
        yield TASKS.fail(says, fix, line, str(several), edits)


def _one_task(plan: Plan, launch: Launch, several: int) -> Edits:
    """Request one task on each node where tasks are requested; it takes over the CPUs of the
    others.
    """
    step, nodes = launch.step, plan.job.nodes
    if step is not None and step.program != "srun":
        return ()
    if step is not None and "ntasks" in step.options:
        pattern = r"(?:--ntasks(?!-)(?:=|\s+)|(?<!\S)-n\s*)\S+"
        return plan.swap(launch, pattern, f"--ntasks={launch.shape.nodes}")
    if step is not None and "ntasks-per-node" in step.options:
        return plan.swap(launch, r"--ntasks-per-node(?:=|\s+)\S+", "--ntasks-per-node=1")
    edits: Edits = ()
    if "ntasks-per-node" in plan.options or "ntasks" not in plan.options:
        edits += plan.setting("ntasks-per-node", "1")
    if "ntasks" in plan.options:
        edits += plan.setting("ntasks", str(nodes))
        if plan.job.tasks and not plan.job.sets_nodes:
            edits += plan.setting("nodes", str(nodes))
    if plan.job.cpus and "cpus-per-task" in plan.options:
        edits += plan.setting("cpus-per-task", str(plan.job.cpus * several))
    return edits


def _launcher_without_step(plan: Plan, launch: Launch) -> Iterator[Finding]:
    """Without srun a launcher runs on the first node alone."""
    nodes = plan.job.nodes
    launcher = plan.script.scheduler.launcher
    spreads_itself = launch.program == "deepspeed" and "hostfile" in launch.options
    other_branch = launch.run.command.conditional and any(
        other.step is not None and other.run.command.conditional for other in plan.launches
    )
    if nodes <= 1 or launch.in_loop or spreads_itself or other_branch:
        return
    if launch.program == "deepspeed":
        says = (
            f"{launch.place} has no --hostfile and starts ranks on the first of {nodes} nodes only"
        )
    elif launch.machines == (1, 1):
        says = f"{launch.place} runs on the first of {nodes} nodes only: the others stay idle"
    else:
        says = (
            f"{launch.place} is started without {launcher}: it runs on the first of {nodes} nodes"
            " only and waits there for the others"
        )
    fix = "start it on each node: srun --ntasks-per-node=1 … in front of it"
    edits = plan.prefixed(launch, f"srun --nodes={nodes} --ntasks-per-node=1")
    yield TASKS.fail(says, fix, launch.line, "1", edits)


def _python_tasks(plan: Plan, launch: Launch) -> Iterator[Finding]:
    """Plain Python: the tasks are the ranks."""
    gpus, on_node, line = launch.shape.gpus, launch.shape.tasks_on_node, launch.line
    about, looped = plan.about(launch), launch.in_loop
    if launch.step is None:
        fix = ""
        if plan.job.nodes > 1 and not looped and not about.get("submits"):
            says = f"it runs once, on the first of {plan.job.nodes} nodes"
            fix = "one task for each GPU: srun python …"
        elif plan.job.all_tasks > 1 and not looped and not about.get("spawns"):
            says, fix = f"it is one process, not {plan.job.all_tasks} tasks", "srun python …"
        if fix:
            says = f"{launch.place} is started without {plan.script.scheduler.launcher}: {says}"
            made = TASKS.fail if about.get("inits") else TASKS.likely
            yield made(says, fix, line, "1", plan.prefixed(launch, "srun"))
        return
    if _one_process(plan, launch):
        return
    if (
        not gpus
        or on_node == gpus
        or not launch.counted
        or (on_node < gpus and about.get("spawns"))
    ):
        return
    why = "it must be one task for each GPU" if on_node < gpus else "several ranks would share one"
    says = (
        f"{launch.step_program} starts {counted(on_node, 'task')} of Python on each node (line"
        f" {line}), which has {counted(gpus, 'GPU')}: {why}"
    )
    if "ntasks" in plan.options and "ntasks-per-node" not in plan.options:
        edits = plan.setting("ntasks", str(gpus * plan.job.nodes))
    else:
        edits = plan.setting("ntasks-per-node", str(gpus))
    # a program may start its own ranks, or use several GPUs in one process
    sure = on_node > gpus or (about.get("inits") and not about.get("spawns"))
    made = TASKS.fail if sure else TASKS.likely
    yield made(says, f"--ntasks-per-node={gpus}", line, str(on_node), edits)


def _one_process(plan: Plan, launch: Launch) -> bool:
    """Whether one process is meant to drive several GPUs: its step asks for one task alone, or Ray
    starts the others.
    """
    asked = launch.step.options.get("ntasks") if launch.step is not None else None
    ray = any(run.words[:2] == ("ray", "start") for run in plan.script.commands)
    return launch.shape.tasks_on_node == 1 and (ray or (asked is not None and asked.value == "1"))


def _node_counts(plan: Plan, launch: Launch) -> Iterator[Finding]:
    """The nodes in the launcher's options, against the nodes of the step."""
    option = {"torchrun": "--nnodes", "accelerate": "--num_machines", "deepspeed": "--num_nodes"}
    if launch.program not in option or launch.step is None or launch.in_loop:
        return
    if not launch.counted or launch.step_program == "ssh":
        return
    name, machines, nodes = option[launch.program], launch.machines, launch.shape.nodes
    value = launch.value("nnodes", "num-machines", "num-nodes")
    if machines is None or machines[0] <= nodes <= machines[1] or "standalone" in launch.options:
        return
    if value is None:
        says = f"{launch.place} has no {name}: each of {nodes} nodes starts a world of its own"
    elif machines[0] > nodes:
        says = (
            f"{launch.place} waits for {machines[0]} nodes ({name}) and would wait for ever: the"
            f" step has {nodes}"
        )
    else:
        says = (
            f"{launch.place} takes {counted(machines[1], 'node')} ({name}), and the step has"
            f" {nodes}: one world too many, or idle nodes"
        )
    if (group := _meant_component(plan, launch, machines)) is not None:
        says += f"; without --het-group it is component 0, and component {group} is meant"
        edits = plan.swap_in(launch.step.command.line, "srun", f"srun --het-group={group}")
        yield TASKS.fail(says, f"srun --het-group={group}", launch.line, value or "1", edits)
        return
    edits = ()
    nnodes = "--nnodes=$SLURM_JOB_NUM_NODES"
    if launch.program == "torchrun" and value is not None:
        edits = plan.swap(launch, NNODES, nnodes)
    elif launch.program == "torchrun":
        each = launch.options.get("nproc-per-node") or "1"
        edits = plan.swap(launch, NPROC, f"{nnodes} --nproc-per-node={each}")
    yield TASKS.fail(says, f"{name}=$SLURM_JOB_NUM_NODES", launch.line, value or "1", edits)


def _meant_component(plan: Plan, launch: Launch, machines: tuple[int, int]) -> int | None:
    """The component of a heterogeneous job with as many nodes as the launcher waits for and GPUs,
    where its step names none: srun(1) then starts it in component 0.
    """
    if launch.option("het-group") or launch.shape.gpus or launch.step_program != "srun":
        return None
    shapes = [shape(part) for part in plan.script.components]
    fit = [
        number
        for number, one in enumerate(shapes)
        if number and one.gpus and machines[0] <= one.nodes <= machines[1]
    ]
    return fit[0] if len(fit) == 1 else None


def _gpus_and_ranks(plan: Plan, launch: Launch) -> Iterator[Finding]:
    gpus, each, line = launch.shape.gpus, launch.per_node, launch.line
    by_cpu = "cpu" in launch.options
    if launch.program == "python" or each is None or by_cpu or launch.in_loop:
        return
    if gpus is None:
        yield from _no_gpus(plan, launch, each)
        return
    if each == gpus or (each < gpus and each * launch.shape.tasks_on_node == gpus):
        return  # in the second case the number of launchers is wrong, which _tasks reports
    edits: Edits = ()
    fix = f"as many processes as GPUs: {gpus} on each node"
    if launch.program == "torchrun":
        fix = f"--nproc-per-node={gpus}"
        edits = plan.swap(launch, NPROC, fix)
        edits = edits or plan.swap(launch, r"(?<![\w./-])torchrun(?=\s)", f"torchrun {fix}")
    ranks = counted(each, "rank")
    if each > gpus:
        says = (
            f"{launch.place} starts {ranks} on each node, which has {counted(gpus, 'GPU')}: two"
            " ranks cannot share one"
        )
        yield GPUS.fail(says, fix, line, str(each), edits)
    else:
        says = f"{launch.place} starts {ranks} on each node: {gpus - each} of {gpus} GPUs stay idle"
        yield TASKS.likely(says, fix, line, str(each), edits)


def _no_gpus(plan: Plan, launch: Launch, each: int) -> Iterator[Finding]:
    gpus = [node.gpus or 0 for node in plan.nodes]
    if each < 2 or plan.exclusive or not gpus or not all(gpus):
        return
    says = (
        f"The job requests no GPU, and {launch.place} starts {each} ranks on each node: SLURM hides"
        f" the {max(gpus)} GPUs of the nodes"
    )
    right = str(min(each, max(gpus)))
    fix, edits = f"#SBATCH --gpus-per-node={right}", plan.setting("gpus-per-node", right)
    yield TASKS.fail(says, fix, launch.line, "0", edits)


def _visible_gpus(plan: Plan, launch: Launch) -> Iterator[Finding]:
    name = "CUDA_VISIBLE_DEVICES"
    visible, gpus = launch.run.environment().get(name), launch.shape.gpus
    if visible is None or re.search(r"[$\u27ea]", visible) or not gpus:
        return
    count = sum(1 for device in visible.split(",") if device.strip())
    if count >= gpus:
        return
    assigned = plan.assignment(name)
    line = assigned.line if assigned else 0
    where = f"line {line}" if line else "the environment in which it is submitted"
    says = f"{name}={visible} ({where}) shows {count} of the {gpus} GPUs that the job requests"
    own_line = plan.script.line(line).lstrip().startswith((f"export {name}", name))
    edits = (Edit(line, "delete"),) if line and own_line else ()
    yield TASKS.fail(says, f"leave {name} to SLURM", line, visible, edits)


def _gpu_of_each_task(plan: Plan, launch: Launch) -> Iterator[Finding]:
    """SLURM shows each task its own GPUs only, and they count from 0 there."""
    each, on_node = launch.gpus_of_task, launch.shape.tasks_on_node
    if launch.program != "python" or each is None or on_node < 2 or on_node <= each:
        return
    option = next(
        (name for name in ("gpus-per-task", "ntasks-per-gpu") if launch.option(name)), "gpu-bind"
    )
    line = plan.line_of(option) or launch.line
    device = plan.about(launch).get("device")
    if device != "local_rank":
        return
    says = (
        f"--{option} shows each of {on_node} tasks on a node {counted(each, 'GPU')} only, which"
        f" counts from 0 there, and {launch.script.rpartition('/')[2]} takes the GPU of its local"
        " rank: invalid device ordinal on all but the first"
    )
    right = str(each * on_node)
    edits: Edits = ()
    if option == "gpus-per-task" and option in plan.options:
        line_of_it = plan.options[option].line
        new = f"#SBATCH --gpus-per-node={right}"
        edits = (Edit(line_of_it, "replace", new),) if line_of_it > 0 else ()
    fix = f"--gpus-per-node={right}, --gpu-bind=none, or device 0 in the program"
    yield TASKS.fail(says, fix, line, str(each), edits)


def _gpus_of_site(plan: Plan) -> Iterator[Finding]:
    gpus = plan.job.gpus
    known = [node.gpus for node in plan.nodes if node.gpus is not None]
    if not gpus or not known or gpus <= max(known):
        return
    says = (
        f"The job requests {gpus} GPUs on each node and would never start: the nodes of"
        f" {plan.partition_name} have {max(known) or 'none'}"
    )
    line = plan.line_of("gpus-per-node", "gres", "gpus", "gpus-per-task")
    fix = f"at most {max(known)} on each node, or another partition"
    yield SITE.fail(says, fix, line, str(gpus))
