"""A launcher is told where its ranks meet, in a way that makes them one world."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainprobe.sbatch.expanding import frozen
from trainprobe.sbatch.findings import Edit, Finding
from trainprobe.sbatch.launches import Launch
from trainprobe.sbatch.plan import Plan, found
from trainprobe.sbatch.rules.tasks import NNODES, NPROC

RENDEZVOUS = "plan.rendezvous"
FIRST_NODE = 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
OWN_PORT = "export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))"


def told_where(plan: Plan, launch: Launch) -> Iterator[Finding]:
    if launch.program == "torchrun":
        yield from _torchrun(plan, launch)
    elif launch.program == "accelerate":
        yield from _accelerate(launch)
    elif launch.program == "python":
        yield from _by_environment(plan, launch)
    for name in ("node-rank", "machine-rank"):
        variable = _frozen_in(launch.options.get(name, ""))
        if variable:
            says = (
                f"--{name} in line {launch.line} gets ${variable} from the batch shell, where it is"
                " 0: every node would be node 0"
            )
            fix = (
                f"srun bash -c '… --{name} ${variable} …', with single quotes, or"
                " --rdzv-backend=c10d without it"
            )
            yield found(
                RENDEZVOUS,
                "fail",
                says,
                fix,
                launch.line,
                variable,
                _without_rank(plan, launch) if name == "node-rank" else (),
            )


def _without_rank(plan: Plan, launch: Launch) -> tuple[Edit, ...]:
    """Torchrun's dynamic rendezvous needs no rank of the node."""
    value = r"(?:=|\s+)(?:\"[^\"]*\"|\S+)"
    edits = plan.swap(launch, rf"\s*--node[-_]rank{value}", "")
    if not edits or "master-addr" not in launch.options or "master-port" not in launch.options:
        return ()
    told = "--rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d --rdzv-endpoint="
    told += f"{_as_written(plan, launch, 'master-addr')}:{_as_written(plan, launch, 'master-port')}"
    return (
        *edits,
        *plan.swap(launch, rf"--master[-_]addr{value}", told),
        *plan.swap(launch, rf"\s*--master[-_]port{value}", ""),
    )


def _as_written(plan: Plan, launch: Launch, name: str) -> str:
    pattern = name.replace("-", "[-_]")
    text = "\n".join(plan.script.lines[launch.done.line - 1 : launch.done.last + 1])
    told = re.search(rf"--{pattern}(?:=|\s+)(\"[^\"]*\"|\S+)", text)
    return told[1].strip('"') if told else launch.options[name]


def _frozen_in(text: str) -> str:
    return next(
        (
            name
            for name in ("SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID")
            if frozen(name) in text
        ),
        "",
    )


def _torchrun(plan: Plan, launch: Launch) -> Iterator[Finding]:
    options, nodes, line = launch.options, launch.shape.nodes, launch.line
    if launch.done.loop:
        return
    told = "--rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT"
    fix = f"{told}, with MASTER_ADDR and MASTER_PORT set above"
    if nodes < 2:
        return
    if "standalone" in options:
        says = (
            f"torchrun --standalone in line {line} makes a world of its own on each of {nodes}"
            " nodes"
        )
        edits = (
            *plan.swap(launch, r"--standalone", f"--nnodes=$SLURM_JOB_NUM_NODES {told}"),
            *_with_meeting(plan),
        )
        yield found(RENDEZVOUS, "fail", says, fix, line, "--standalone", edits)
        return
    backend = options.get("rdzv-backend", "static")
    if backend == "static" and "rdzv-endpoint" not in options and "master-addr" not in options:
        says = (
            f"torchrun in line {line} is not told where {nodes} nodes meet: each takes 127.0.0.1,"
            " for torchrun does not read MASTER_ADDR"
        )
        pattern = NNODES if "nnodes" in options else NPROC
        kept = (
            "--nnodes=$SLURM_JOB_NUM_NODES"
            if "nnodes" in options
            else f"--nproc-per-node={options.get('nproc-per-node', '1')}"
        )
        yield found(
            RENDEZVOUS,
            "fail",
            says,
            fix,
            line,
            "",
            (*plan.swap(launch, pattern, f"{kept} {told}"), *_with_meeting(plan)),
        )
        return
    if backend == "static" and "node-rank" not in options:
        says = (
            f"torchrun in line {line} has the static rendezvous and no --node-rank, so every node"
            " is node 0"
        )
        edits = (
            plan.swap(launch, r"--rdzv[-_]endpoint", "--rdzv-backend=c10d --rdzv-endpoint")
            if "rdzv-endpoint" in options and "rdzv-backend" not in options
            else ()
        )
        yield found(
            RENDEZVOUS,
            "fail",
            says,
            "--rdzv-backend=c10d, which needs no node rank",
            line,
            "static",
            edits,
        )
        return
    if options.get("node-rank", "").isdigit():
        says = (
            f"--node-rank={options['node-rank']} in line {line} is the same on all {nodes} nodes of"
            " the step"
        )
        yield found(
            RENDEZVOUS,
            "fail",
            says,
            "--rdzv-backend=c10d without --node-rank, or srun bash -c '… --node-rank"
            " $SLURM_NODEID …'",
            line,
            options["node-rank"],
        )
    if (
        re.search(r"RANDOM|date|uuid", options.get("rdzv-id", ""))
        and launch.done.task
        and _made_in_task(launch, options["rdzv-id"])
    ):
        yield found(
            RENDEZVOUS,
            "fail",
            f"--rdzv-id in line {line} is drawn on each node anew: the nodes would not meet",
            "--rdzv-id=$SLURM_JOB_ID",
            line,
            options["rdzv-id"],
        )
    if backend in ("c10d", "etcd", "etcd-v2") and "rdzv-endpoint" not in options:
        yield found(
            RENDEZVOUS,
            "fail",
            f"torchrun in line {line} has --rdzv-backend={backend} and no --rdzv-endpoint",
            fix,
            line,
            backend,
        )


def _made_in_task(launch: Launch, text: str) -> bool:
    """Whether a substitution is still open where the task's own shell reads it."""
    step = launch.step
    return step is not None and not any(
        word == text or word.endswith(f"={text}") for word in step.words
    )


def _with_meeting(plan: Plan) -> tuple[Edit, ...]:
    names = {one.name for one in plan.script.assigned if not one.task}
    lines = [
        text
        for name, text in (("MASTER_ADDR", FIRST_NODE), ("MASTER_PORT", OWN_PORT))
        if name not in names
    ]
    return plan.before_launches("\n".join(lines)) if lines else ()


def _accelerate(launch: Launch) -> Iterator[Finding]:
    options, nodes, line = launch.options, launch.shape.nodes, launch.line
    if nodes < 2 or launch.done.loop or "config-file" in options:
        return
    if "main-process-ip" not in options:
        yield found(
            RENDEZVOUS,
            "fail",
            f"accelerate in line {line} is not told where {nodes} nodes meet",
            "--main_process_ip $MASTER_ADDR --main_process_port $MASTER_PORT",
            line,
        )
    elif "machine-rank" not in options and options.get("rdzv-backend", "static") == "static":
        yield found(
            RENDEZVOUS,
            "fail",
            f"accelerate in line {line} has no --machine_rank, so every node is machine 0",
            "--rdzv_backend c10d, or srun bash -c '… --machine_rank $SLURM_NODEID …'",
            line,
        )
    elif options.get("machine-rank", "").isdigit():
        yield found(
            RENDEZVOUS,
            "fail",
            f"--machine_rank {options['machine-rank']} in line {line} is the same on all {nodes}"
            " nodes",
            "srun bash -c '… --machine_rank $SLURM_NODEID …'",
            line,
        )


def _by_environment(plan: Plan, launch: Launch) -> Iterator[Finding]:
    """Plain Python under srun: torch needs RANK and WORLD_SIZE, which SLURM does not set."""
    environ: Mapping[str, str] = launch.done.environment()
    for name in ("RANK", "LOCAL_RANK"):
        if (
            name in environ
            and (_frozen_in(environ[name]) or environ[name].isdigit())
            and launch.shape.all_tasks > 1
        ):
            line = next(
                (one.line for one in reversed(plan.script.assigned) if one.name == name),
                launch.line,
            )
            variable = _frozen_in(environ[name])
            how = (
                f"gets ${variable} in the batch shell, where it is 0"
                if variable
                else f"is {environ[name]} for all tasks"
            )
            says = f"{name} in line {line} {how}: every task would be rank 0"
            yield found(
                RENDEZVOUS,
                "fail",
                says,
                f"set it in the task: srun bash -c 'export {name}=$SLURM_PROCID; …', or read"
                " SLURM_PROCID in the program",
                line,
                environ[name],
            )
            return
    about = plan.here.programs.get(launch.script, {})
    if (
        about.get("inits")
        and not about.get("reads_slurm")
        and "RANK" not in environ
        and launch.shape.all_tasks > 1
    ):
        says = (
            f"The {launch.shape.all_tasks} tasks of line {launch.line} have no RANK and WORLD_SIZE:"
            f" SLURM does not set them, and {launch.script} does not read SLURM_PROCID"
        )
        fix = (
            "srun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS"
            " python …', or torchrun with one task on each node"
        )
        yield found(RENDEZVOUS, "fail", says, fix, launch.line)
