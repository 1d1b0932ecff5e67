"""Tasks, launchers and GPUs agree: one launcher on each node with torchrun, one task for each
GPU with plain Python.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.sbatch.findings import Edit, Finding
from trainprobe.sbatch.launches import Launch
from trainprobe.sbatch.plan import Plan, found, skipped

TASKS, GPUS, SITE = "plan.tasks", "plan.gpus", "plan.site"
NPROC = r"--nproc[-_]per[-_]node(?:=|\s+)(?:\"[^\"]*\"|\S+)"
NNODES = r"--nnodes(?:=|\s+)(?:\"[^\"]*\"|\S+)"


def check(plan: Plan) -> Iterator[Finding]:
    if not plan.launches:
        yield skipped(
            TASKS,
            "No launcher and no Python program was found in the script, so tasks and GPUs were not"
            " compared",
        )
        yield skipped(GPUS, "No launch was found")
        return
    said = [
        *(_tasks(plan, one) for one in plan.launches),
        *(_nodes_told(plan, one) for one in plan.launches),
    ]
    said += [
        one
        for launch in plan.launches
        for one in (_for_ranks(plan, launch), _left_visible(plan, launch))
    ]
    wrong = [one for one in (*said, _on_site(plan)) if one is not None]
    yield from wrong
    if not any(one.id == TASKS for one in wrong):
        yield found(TASKS, "ok", "; ".join(dict.fromkeys(_in_words(one) for one in plan.launches)))
    if not any(one.id == GPUS for one in wrong):
        gpus = next((one.shape.gpus for one in plan.launches if one.shape.gpus is not None), None)
        yield (
            found(GPUS, "ok", f"No rank shares one of the {gpus} GPUs of a node", value=str(gpus))
            if gpus is not None
            else skipped(GPUS, "No GPU is asked for")
        )


def _in_words(launch: Launch) -> str:
    shape = launch.shape
    if launch.program == "python":
        return (
            f"{shape.all_tasks} {_tasks_word(shape.all_tasks)} of Python on"
            f" {_nodes_word(shape.nodes)}"
        )
    each = launch.per_node
    return (
        f"{launch.program} on {_nodes_word(shape.nodes)} with"
        f" {each if each is not None else 'an unknown number of'} ranks each"
    )


def _tasks_word(number: int) -> str:
    return "task" if number == 1 else "tasks"


def _nodes_word(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"


def _tasks(plan: Plan, launch: Launch) -> Finding | None:
    """Where and how often a launcher is started."""
    if launch.program == "python":
        return _plain(plan, launch)
    if launch.step is None:
        return _without_step(plan, launch)
    several = launch.shape.tasks_on_node
    if several <= 1:
        return None
    says = (
        f"Each node gets {several} {launch.program} from srun (line {launch.line}), and each starts"
        " ranks of its own: there must be one on each node"
    )
    return found(
        TASKS,
        "fail",
        says,
        "one task on each node: --ntasks-per-node=1",
        launch.line,
        str(several),
        _one_each(plan, launch, several),
    )


def _one_each(plan: Plan, launch: Launch, several: int) -> tuple[Edit, ...]:
    """Set the tasks where they were said; the CPUs of the tasks that go fall to the one that
    stays.
    """
    step = launch.step
    if step is not None and ("ntasks" in step.options or "ntasks-per-node" in step.options):
        text = (
            f"--ntasks={launch.shape.nodes}" if "ntasks" in step.options else "--ntasks-per-node=1"
        )
        pattern = (
            r"(?:--ntasks(?!-)(?:=|\s+)|(?<!\S)-n\s*)\S+"
            if "ntasks" in step.options
            else r"--ntasks-per-node(?:=|\s+)\S+"
        )
        return plan.swap(launch, pattern, text)
    edits = (
        plan.setting("ntasks-per-node", "1")
        if "ntasks-per-node" in plan.options or "ntasks" not in plan.options
        else ()
    )
    if "ntasks" in plan.options:
        edits += plan.setting("ntasks", str(plan.job.nodes))
        if plan.job.tasks and not plan.job.nodes_said:
            edits += plan.setting("nodes", str(plan.job.nodes))
    cpus = plan.job.cpus
    if cpus and "cpus-per-task" in plan.options:
        edits += plan.setting("cpus-per-task", str(cpus * several))
    return edits


def _without_step(plan: Plan, launch: Launch) -> Finding | None:
    """Without srun a launcher runs on the first node alone."""
    nodes = plan.job.nodes
    if (
        nodes <= 1
        or launch.done.loop
        or (launch.program == "deepspeed" and "hostfile" in launch.options)
    ):
        return None
    if launch.program == "deepspeed":
        says = (
            f"deepspeed in line {launch.line} has no --hostfile, so it starts ranks on the first"
            f" node only, and {nodes} nodes are asked for"
        )
    elif launch.machines == (1, 1):
        says = (
            f"{launch.program} in line {launch.line} runs on the first node only, and {nodes} nodes"
            " are asked for: the others stay idle"
        )
    else:
        says = (
            f"{launch.program} in line {launch.line} is started without srun, so it runs on the"
            f" first of {nodes} nodes only and waits there for the others"
        )
    return found(
        TASKS,
        "fail",
        says,
        "start it on each node: srun --ntasks-per-node=1 … in front of it",
        launch.line,
        "1",
        _with_step(plan, launch),
    )


def _with_step(plan: Plan, launch: Launch) -> tuple[Edit, ...]:
    line = plan.script.lines[launch.line - 1]
    bare = line.lstrip()
    name = launch.done.raw[0] if launch.done.raw else ""
    if not name or not bare.startswith(name):
        return ()
    return (
        Edit(
            launch.line, "swap", f"srun --nodes={plan.job.nodes} --ntasks-per-node=1 {name}", name
        ),
    )


def _plain(plan: Plan, launch: Launch) -> Finding | None:
    """Plain Python: the tasks are the ranks."""
    shape, gpus = launch.shape, launch.shape.gpus
    about = plan.here.programs.get(launch.script, {})
    if launch.step is None:
        if plan.job.nodes > 1 and not launch.done.loop and not about.get("submits"):
            says = (
                f"python in line {launch.line} is started without srun, so it runs once on the"
                f" first node, and {plan.job.nodes} nodes are asked for"
            )
            fix = "one task for each GPU: srun python …"
            return found(TASKS, "fail", says, fix, launch.line, "1", _prefixed(plan, launch))
        if plan.job.all_tasks > 1 and not launch.done.loop and not about.get("spawns"):
            says = (
                f"python in line {launch.line} is started without srun, so there is one process,"
                f" and {plan.job.all_tasks} tasks are asked for"
            )
            return found(
                TASKS, "fail", says, "srun python …", launch.line, "1", _prefixed(plan, launch)
            )
        return None
    on_node = shape.tasks_on_node
    if gpus and on_node < gpus and not about.get("spawns"):
        says = (
            f"Each node gets {on_node} {_tasks_word(on_node)} of Python from srun (line"
            f" {launch.line}) and has {gpus} GPUs: it must be one task for each GPU"
        )
        return found(
            TASKS,
            "fail",
            says,
            f"--ntasks-per-node={gpus}",
            launch.line,
            str(on_node),
            _for_each_gpu(plan, gpus),
        )
    if gpus and on_node > gpus:
        says = (
            f"Each node gets {on_node} tasks of Python from srun (line {launch.line}) and has"
            f" {gpus} GPUs: several ranks would share one"
        )
        return found(
            TASKS,
            "fail",
            says,
            f"--ntasks-per-node={gpus}",
            launch.line,
            str(on_node),
            _for_each_gpu(plan, gpus),
        )
    return None


def _prefixed(plan: Plan, launch: Launch) -> tuple[Edit, ...]:
    line = plan.script.lines[launch.line - 1]
    bare = line.lstrip()
    name = launch.done.raw[0] if launch.done.raw else ""
    return (
        (Edit(launch.line, "swap", f"srun {name}", name),) if name and bare.startswith(name) else ()
    )


def _for_each_gpu(plan: Plan, gpus: int) -> tuple[Edit, ...]:
    if "ntasks" in plan.options and "ntasks-per-node" not in plan.options:
        return plan.setting("ntasks", str(gpus * plan.job.nodes))
    return plan.setting("ntasks-per-node", str(gpus))


def _nodes_told(plan: Plan, launch: Launch) -> Finding | None:
    """What the launcher was told of nodes, against the nodes that the step has."""
    if launch.program == "python" or launch.step is None or launch.done.loop:
        return None
    told, nodes = launch.machines, launch.shape.nodes
    said = launch.value("nnodes", "num-machines", "num-nodes")
    if told is None or told[0] <= nodes <= told[1] or "standalone" in launch.options:
        return None
    option = {"torchrun": "--nnodes", "accelerate": "--num_machines", "deepspeed": "--num_nodes"}[
        launch.program
    ]
    if said is None:
        says = (
            f"{launch.program} in line {launch.line} is not told of {nodes} nodes: without {option}"
            " each starts a world of its own"
        )
    elif told[0] > nodes:
        says = (
            f"{launch.program} in line {launch.line} waits for {told[0]} nodes ({option}), and the"
            f" step has {nodes}: it would wait for ever"
        )
    else:
        says = (
            f"{launch.program} in line {launch.line} takes {told[1]}"
            f" {'node' if told[1] == 1 else 'nodes'} ({option}), and the step has {nodes}: one"
            " world too many or idle nodes"
        )
    edits = (
        plan.swap(launch, NNODES, "--nnodes=$SLURM_JOB_NUM_NODES")
        if said is not None and launch.program == "torchrun"
        else ()
    )
    if said is None and launch.program == "torchrun":
        edits = plan.swap(
            launch,
            NPROC,
            "--nnodes=$SLURM_JOB_NUM_NODES --nproc-per-node="
            + (launch.options.get("nproc-per-node") or "1"),
        )
    return found(
        TASKS, "fail", says, f"{option}=$SLURM_JOB_NUM_NODES", launch.line, said or "1", edits
    )


def _for_ranks(plan: Plan, launch: Launch) -> Finding | None:
    gpus, each = launch.shape.gpus, launch.per_node
    if launch.program == "python" or each is None or "cpu" in launch.options or launch.done.loop:
        return None
    if gpus is None:
        there = max((node.gpus or 0 for node in plan.nodes), default=0)
        if (
            there
            and each > 1
            and not plan.exclusive
            and plan.nodes
            and all(node.gpus for node in plan.nodes)
        ):
            says = (
                f"No GPU is asked for, and {launch.program} in line {launch.line} starts {each}"
                f" ranks on each node: SLURM hides the {there} GPUs that the nodes have"
            )
            return found(
                TASKS,
                "fail",
                says,
                f"#SBATCH --gpus-per-node={min(each, there)}",
                launch.line,
                "0",
                plan.setting("gpus-per-node", str(min(each, there))),
            )
        return None
    if each == gpus:
        return None
    edits: tuple[Edit, ...] = ()
    if launch.program == "torchrun":
        edits = plan.swap(launch, NPROC, f"--nproc-per-node={gpus}")
        edits = edits or plan.swap(
            launch, r"(?<![\w./-])torchrun(?=\s)", f"torchrun --nproc-per-node={gpus}"
        )
    fix = (
        f"--nproc-per-node={gpus}"
        if launch.program == "torchrun"
        else f"as many processes as GPUs: {gpus} on each node"
    )
    if each > gpus:
        says = (
            f"{launch.program} in line {launch.line} starts {each} ranks on each node, and {gpus}"
            " GPUs are asked for there: two ranks cannot share one"
        )
        return found(GPUS, "fail", says, fix, launch.line, str(each), edits)
    if each * launch.shape.tasks_on_node == gpus:
        return None  # the launchers' number is wrong, and that is said
    says = (
        f"{launch.program} in line {launch.line} starts {each} {'rank' if each == 1 else 'ranks'}"
        f" on each node, and {gpus} GPUs are asked for: {gpus - each} stay idle"
    )
    return found(TASKS, "fail", says, fix, launch.line, str(each), edits)


def _left_visible(plan: Plan, launch: Launch) -> Finding | None:
    visible, gpus = launch.done.environment().get("CUDA_VISIBLE_DEVICES"), launch.shape.gpus
    if visible is None or "$" in visible or not gpus:
        return None
    count = len([one for one in visible.split(",") if one.strip()])
    if count >= gpus and launch.shape.nodes >= 1:
        return None
    line = next(
        (one.line for one in reversed(plan.script.assigned) if one.name == "CUDA_VISIBLE_DEVICES"),
        0,
    )
    where = f"line {line}" if line else "the environment in which it is submitted"
    says = (
        f"CUDA_VISIBLE_DEVICES={visible} ({where}) shows {count} of the {gpus} GPUs that are"
        " asked for"
    )
    edits = (
        (Edit(line, "delete"),)
        if line
        and plan.script.lines[line - 1].lstrip().startswith(("export CUDA_VISIBLE", "CUDA_VISIBLE"))
        else ()
    )
    return found(TASKS, "fail", says, "leave CUDA_VISIBLE_DEVICES to SLURM", line, visible, edits)


def _on_site(plan: Plan) -> Finding | None:
    gpus = plan.job.gpus
    known = [node.gpus for node in plan.nodes if node.gpus is not None]
    if not gpus or not known or gpus <= max(known):
        return None
    name = plan.partition.name if plan.partition else "the cluster"
    line = plan.line_of("gpus-per-node", "gres", "gpus", "gpus-per-task")
    most = max(known)
    says = (
        f"{gpus} GPUs are asked for on each node, and the nodes of {name} have {most or 'none'}:"
        " the job would never start"
    )
    return found(
        SITE, "fail", says, f"at most {most} on each node, or another partition", line, str(gpus)
    )
