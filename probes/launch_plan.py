# /// trainprobe
# rung: 11
# ladder: false
# ready: quick
# slots: [step, taskprolog]
# question: Do the variables of the launch fit each other and this host?
# scope: host
# needs: []
# timeout_s: 20
# climbs: []
# after: []
# means: The launch contradicts itself, or a variable in its environment changes what the libraries do. Ranks would wait for others that never come, or run slowly.
# ///
"""Read the environment of the launch and NCCL's files of settings. Nothing is started but look-ups of names; standard library only.

Flags and environment: see _ready/checking.py. Events: checks, and as `value` what all nodes must share (versions, environment, settings).
"""

from __future__ import annotations

import os
import re
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from _launch import told as shared, variables  # isort: skip  # before _ready, which takes this folder off the path
from _ready import checking, child, places  # isort: skip

FULL = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
TASK = ("step", "taskprolog")
GPU = re.compile(r"\d+|(?:GPU|MIG)-[\w/-]+")


def ranks(_asked: checking.Asked, told: checking.Told) -> None:
    given = {name: os.environ.get(name, "") for name in FULL}
    if not given["RANK"] and not given["WORLD_SIZE"]:
        told.say("plan.ranks", "skip", "No rank variables are set here: the launcher sets them.")
        return
    wrong = [f"{name} is not set" for name, value in given.items() if not value]
    numbers = {name: int(os.environ[name]) for name in (*FULL, "LOCAL_WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS") if os.environ.get(name, "").isdigit()}
    wrong += [f"{name}={given[name]!r} is no number" for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT") if given[name] and name not in numbers]
    for low, high in (("RANK", "WORLD_SIZE"), ("LOCAL_RANK", "LOCAL_WORLD_SIZE")):
        if low in numbers and high in numbers and numbers[low] >= numbers[high]:
            wrong.append(f"{low}={numbers[low]} is not below {high}={numbers[high]}")
    if numbers.get("LOCAL_WORLD_SIZE", 0) > numbers.get("WORLD_SIZE", 2**31):
        wrong.append(f"LOCAL_WORLD_SIZE={numbers['LOCAL_WORLD_SIZE']} is above WORLD_SIZE={numbers['WORLD_SIZE']}")
    by_srun = "TORCHELASTIC_RUN_ID" not in os.environ and numbers.get("SLURM_NTASKS", 1) == numbers.get("WORLD_SIZE", 0) > 1
    if by_srun and "RANK" in numbers and numbers["RANK"] != numbers.get("SLURM_PROCID", numbers["RANK"]):
        wrong.append(f"RANK={numbers['RANK']} in the task with SLURM_PROCID={numbers['SLURM_PROCID']}: another task has this rank too")
    if "MASTER_PORT" in numbers and not 0 < numbers["MASTER_PORT"] < 65536:
        wrong.append(f"MASTER_PORT={numbers['MASTER_PORT']} is no port")
    fix = "export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID, or start the script with torchrun"
    told.say("plan.ranks", "fail" if wrong else "ok", f"Rank variables: {'; '.join(wrong) or 'complete, and they fit each other'}.", given, fix=fix)


def tasks(asked: checking.Asked, told: checking.Told) -> None:
    world = os.environ.get("WORLD_SIZE", "")
    planned = asked.nproc * len(asked.nodes) if asked.nodes else asked.world
    wrong = [f"{len(asked.nodes)} nodes with {asked.nproc} ranks each make {planned} ranks, and {asked.world} are planned"] if planned != asked.world else []
    if world.isdigit() and int(world) not in (1, asked.world) and asked.world > 1:
        wrong.append(f"WORLD_SIZE={world}, and {asked.world} ranks are planned")
    says = "; ".join(wrong) or f"{asked.world} rank{'s' if asked.world != 1 else ''} in all, {asked.nproc} on this host"
    told.say("plan.tasks", "warn" if wrong else "ok", f"{says}.", planned, fix=f"torchrun --nnodes {max(1, len(asked.nodes))} --nproc-per-node {asked.nproc} …")


def seen_by_cuda(visible: str) -> int:
    """How many GPUs CUDA_VISIBLE_DEVICES leaves: what stands behind a word that names none, as -1 or NoDevFiles, is not read (CUDA's programming guide)."""
    words = [word.strip() for word in visible.split(",")]
    return next((place for place, word in enumerate(words) if not GPU.fullmatch(word)), len(words))


def gpus(asked: checking.Asked, told: checking.Told) -> None:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    given = os.environ.get("SLURM_GPUS_ON_NODE", "")
    named = os.environ.get("TRAINPROBE_GPUS", "").isdigit()  # GPUs were asked for, so that a host without one is no host for it
    devices = len(places.found(asked.root, "/dev/nvidia[0-9]*"))
    count = seen_by_cuda(visible) if visible is not None else int(given) if given.isdigit() else devices
    if not named and given in ("", "0") and not (count and devices):
        told.say("plan.gpus", "skip", f"{'This host has no GPU' if not devices else 'No GPU of this host is given to us'}, and none was asked for.")
    elif not count:
        fix = f"srun --gpus-per-node={asked.nproc}; or in a container: --gpus all"
        told.say("plan.gpus", "fail", f"{asked.nproc} GPUs are asked for, and none is given to this host.", 0, fix=fix)
    elif count < asked.nproc:
        fix = f"torchrun --nproc-per-node {count}, or srun --gpus-per-node={asked.nproc}"
        told.say("plan.gpus", "fail", f"{asked.nproc} ranks on this host, and {count} GPUs for them: NCCL refuses two ranks on one GPU.", count, fix=fix)
    else:
        spare = f"; {count - asked.nproc} stay idle" if count > asked.nproc > 1 else ""
        told.say("plan.gpus", "warn" if spare else "ok", f"{count} GPUs for {asked.nproc} ranks{spare}.", count, fix=f"torchrun --nproc-per-node {count}")


def master(asked: checking.Asked, told: checking.Told) -> None:
    address, several = os.environ.get("MASTER_ADDR", ""), len(asked.nodes) > 1
    if not address:
        told.say("plan.master", "skip", "MASTER_ADDR is not set here: the launcher sets it.")
        return
    deadline_s = told.threshold("plan.master", 3.0)
    answer = child.ask(lambda: sorted({row[4][0] for row in socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)}), deadline_s)
    fix = 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
    own = address.partition(".")[0] == socket.gethostname().partition(".")[0]
    if answer.how != "answered":
        told.say("plan.master", "fail", f"MASTER_ADDR={address} does not resolve here: {answer.reply}.", address, fix=fix)
    elif several and not own and all(one.startswith("127.") or one in ("::1", "0.0.0.0") for one in answer.reply):  # noqa: S104 - only compared with
        told.say("plan.master", "fail", f"MASTER_ADDR={address} is this host itself on each of {len(asked.nodes)} nodes.", answer.reply, fix=fix)
    else:
        told.say("plan.master", "ok", f"MASTER_ADDR={address} resolves to {', '.join(answer.reply[:4])}.", answer.reply)


def values(asked: checking.Asked, _told: checking.Told) -> None:
    for name, value in shared.values(asked.root):
        checking.value(name, value)


CHECKS = (
    checking.Check(("plan.ranks",), ranks, TASK),
    checking.Check(("plan.tasks",), tasks),
    checking.Check(("plan.gpus",), gpus),
    checking.Check(("plan.master",), master, TASK),
    checking.Check(("plan.debugenv",), variables.leftovers),
    checking.Check(("plan.rename", "plan.names"), variables.spelling),
    checking.Check(("lim.omp",), variables.threads),
    checking.Check((), values),
)

if __name__ == "__main__":
    checking.make(CHECKS, __doc__ or "", "The launch fits this host.")
