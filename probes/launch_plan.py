# /// trainprobe
# rung: 11
# ladder: false
# ready: quick
# slots: [step, taskprolog]
# question: Do the variables of the launch fit each other and this host?
# about: job_python
# scope: host
# needs: []
# timeout_s: 20
# climbs: []
# after: []
# means: The launch contradicts itself, or a variable in its environment changes what the libraries
#   do. Ranks would wait for others that never come, or run slowly.
# ///
"""Read the environment of the launch and NCCL's files of settings. Nothing is started but look-ups
of names; standard library only.

Flags and environment: see `_shared/checks.py`. Events: checks, and as `value` what all nodes must
share (versions, environment, settings).
"""

from __future__ import annotations

import os
import re
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from _launch_plan import shared_settings, variables
from _shared import checks, child_processes, kernel_files

FULL = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
TASK = ("step", "taskprolog")
GPU = re.compile(r"\d+|(?:GPU|MIG)-[\w/-]+")


def ranks(_launch: checks.Launch, results: checks.Results) -> None:
    variables_set = {name: os.environ.get(name, "") for name in FULL}
    if not variables_set["RANK"] and not variables_set["WORLD_SIZE"]:
        results.add("plan.ranks", "skip", "No rank variables are set here: the launcher sets them.")
        return
    wrong = [f"{name} is not set" for name, value in variables_set.items() if not value]
    numbers = {
        name: int(os.environ[name])
        for name in (*FULL, "LOCAL_WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS")
        if os.environ.get(name, "").isdecimal()
    }
    wrong += [
        f"{name}={variables_set[name]!r} is no number"
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT")
        if variables_set[name] and name not in numbers
    ]
    for low, high in (("RANK", "WORLD_SIZE"), ("LOCAL_RANK", "LOCAL_WORLD_SIZE")):
        if low in numbers and high in numbers and numbers[low] >= numbers[high]:
            wrong.append(f"{low}={numbers[low]} is not below {high}={numbers[high]}")
    if numbers.get("LOCAL_WORLD_SIZE", 0) > numbers.get("WORLD_SIZE", 2**31):
        wrong.append(
            f"LOCAL_WORLD_SIZE={numbers['LOCAL_WORLD_SIZE']} is above"
            f" WORLD_SIZE={numbers['WORLD_SIZE']}"
        )
    by_srun = (
        "TORCHELASTIC_RUN_ID" not in os.environ
        and numbers.get("SLURM_NTASKS", 1) == numbers.get("WORLD_SIZE", 0) > 1
    )
    if (
        by_srun
        and "RANK" in numbers
        and numbers["RANK"] != numbers.get("SLURM_PROCID", numbers["RANK"])
    ):
        wrong.append(
            f"RANK={numbers['RANK']} in the task with SLURM_PROCID={numbers['SLURM_PROCID']}:"
            " another task has this rank too"
        )
    if "MASTER_PORT" in numbers and not 0 < numbers["MASTER_PORT"] < 65536:
        wrong.append(f"MASTER_PORT={numbers['MASTER_PORT']} is no port")
    fix = (
        "export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID, or start the"
        " script with torchrun"
    )
    sentence = f"Rank variables: {'; '.join(wrong) or 'complete, and they fit each other'}."
    results.add("plan.ranks", "fail" if wrong else "ok", sentence, variables_set, fix=fix)


def tasks(launch: checks.Launch, results: checks.Results) -> None:
    world = os.environ.get("WORLD_SIZE", "")
    planned = launch.nproc * len(launch.nodes) if launch.nodes else launch.world
    wrong = (
        [
            (
                f"{len(launch.nodes)} nodes with {launch.nproc} ranks each make {planned} ranks,"
                f" and {launch.world} are planned"
            )
        ]
        if planned != launch.world
        else []
    )
    if world.isdecimal() and int(world) not in (1, launch.world) and launch.world > 1:
        wrong.append(f"WORLD_SIZE={world}, and {launch.world} ranks are planned")
    sentence = (
        "; ".join(wrong)
        or f"{launch.world} rank{'s' if launch.world != 1 else ''} in all, {launch.nproc} here"
    )
    fix = f"torchrun --nnodes {max(1, len(launch.nodes))} --nproc-per-node {launch.nproc} …"
    results.add("plan.tasks", "warn" if wrong else "ok", f"{sentence}.", planned, fix=fix)


def visible_gpus(visible: str) -> int:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves: nothing after an invalid entry is read (CUDA)."""
    names = [entry.strip() for entry in visible.split(",")]
    return next(
        (place for place, entry in enumerate(names) if not GPU.fullmatch(entry)), len(names)
    )


def gpus(launch: checks.Launch, results: checks.Results) -> None:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    variables_set = os.environ.get("SLURM_GPUS_ON_NODE", "")
    # GPUs were asked for, so that a host without one is no host for it
    named = os.environ.get("TRAINPROBE_GPUS", "").isdecimal()
    devices = len(kernel_files.matching(launch.root, "/dev/nvidia[0-9]*"))
    count = (
        visible_gpus(visible)
        if visible is not None
        else int(variables_set)
        if variables_set.isdecimal()
        else devices
    )
    if not named and variables_set in ("", "0") and not (count and devices):
        results.add(
            "plan.gpus",
            "skip",
            f"{'This host has no GPU' if not devices else 'this job has no GPU of this host'},"
            " and none was asked for.",
        )
    elif not count:
        fix = f"srun --gpus-per-node={launch.nproc}; or in a container: --gpus all"
        sentence = f"{launch.nproc} GPUs are requested, and this host offers none."
        results.add("plan.gpus", "fail", sentence, 0, fix=fix)
    elif count < launch.nproc:
        fix = f"torchrun --nproc-per-node {count}, or srun --gpus-per-node={launch.nproc}"
        sentence = (
            f"{launch.nproc} ranks on this host, and {count} GPUs for them: NCCL refuses two ranks"
            " on one GPU."
        )
        results.add("plan.gpus", "fail", sentence, count, fix=fix)
    else:
        spare = f"; {count - launch.nproc} stay idle" if count > launch.nproc > 1 else ""
        sentence = f"{count} GPUs for {launch.nproc} ranks{spare}."
        fix = f"torchrun --nproc-per-node {count}"
        results.add("plan.gpus", "warn" if spare else "ok", sentence, count, fix=fix)


def master(launch: checks.Launch, results: checks.Results) -> None:
    address, several = os.environ.get("MASTER_ADDR", ""), len(launch.nodes) > 1
    if not address:
        results.add("plan.master", "skip", "MASTER_ADDR is not set here: the launcher sets it.")
        return
    deadline_s = results.threshold("plan.master", 3.0)
    answer = child_processes.ask(
        lambda: sorted(
            {row[4][0] for row in socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)}
        ),
        deadline_s,
    )
    fix = 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
    own = address.partition(".")[0] == socket.gethostname().partition(".")[0]
    if answer.how != "answered":
        sentence = f"MASTER_ADDR={address} does not resolve here: {answer.reply}."
        results.add("plan.master", "fail", sentence, address, fix=fix)
    elif (
        several
        and not own
        and all(item.startswith("127.") or item in ("::1", "0.0.0.0") for item in answer.reply)  # noqa: S104 - only compared with
    ):
        sentence = (
            f"MASTER_ADDR={address} is this host itself on each of {len(launch.nodes)} nodes."
        )
        results.add("plan.master", "fail", sentence, answer.reply, fix=fix)
    else:
        sentence = f"MASTER_ADDR={address} resolves to {', '.join(answer.reply[:4])}."
        results.add("plan.master", "ok", sentence, answer.reply)


def values(launch: checks.Launch, _results: checks.Results) -> None:
    for name, value in shared_settings.values(launch.root):
        checks.value(name, value)


CHECKS = (
    checks.Check(("plan.ranks",), ranks, TASK),
    checks.Check(("plan.tasks",), tasks),
    checks.Check(("plan.gpus",), gpus),
    checks.Check(("plan.master",), master, TASK),
    checks.Check(("plan.debugenv",), variables.leftovers),
    checks.Check(("plan.rename", "plan.names"), variables.spelling),
    checks.Check(("lim.omp",), variables.threads),
    checks.Check((), values),
)

if __name__ == "__main__":
    checks.run(CHECKS, __doc__ or "", "The launch fits this host.")
