"""What is left of jobs that a scheduler ended, and batch scripts that were not submitted yet."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.gallery.nodes.once_wrong.jobs import TRAINING, batch, has
from tests.gallery.nodes.once_wrong.situation import (
    Look,
    Seen,
    Situation,
    Wrongs,
    called,
    users,
    with_report,
)
from tests.gallery.nodes.stand import Stand

RANKS = 4
LIMIT_WITHIN_S = 240.0


def explain(stand: Stand, logs: Path) -> Look:
    def look(folder: Path) -> Seen:
        argv = [sys.executable, "-m", "trainprobe", "explain", str(logs), *with_report(folder)]
        return called(argv, folder, users(stand))

    return look


def torchrun_under_srun(stand: Stand, logs: Path, folder: Path) -> str:
    """One launcher of two ranks on each of two nodes, with a log of each task."""
    return (
        f"srun -N2 -n2 --output={logs}/task-%t.log {sys.executable} -m torch.distributed.run"
        " --nnodes=2 --nproc-per-node=2 --rdzv-backend=c10d --rdzv-id=7"
        f" --rdzv-endpoint={stand.hosts[0].address}:29660 {TRAINING} {folder} -1\n"
    )


@contextlib.contextmanager
def _logs_of(stand: Stand, folder: Path, *options: str, cancel: bool) -> Iterator[Look]:
    logs = folder / "logs"
    logs.mkdir()
    text = torchrun_under_srun(stand, logs, folder)
    where = ("-N2", "--nodelist=node[1-2]", "--ntasks-per-node=1", *options)
    with batch(stand, logs, text, *where) as job:
        has(*(folder / f"step-{rank}" for rank in range(RANKS)))
        if cancel:
            stand.slurm.run("scancel", str(job))
        until = time.monotonic() + LIMIT_WITHIN_S
        while f"JobId={job}" not in _over(stand, job) and time.monotonic() < until:
            time.sleep(1)
        time.sleep(3)
    yield explain(stand, logs)


def _over(stand: Stand, job: int) -> str:
    said = stand.slurm.run("scontrol", "show", "job", str(job)).stdout
    return said if re.search(r"JobState=(CANCELLED|TIMEOUT|FAILED|COMPLETED)", said) else ""


@contextlib.contextmanager
def scancelled(stand: Stand, folder: Path) -> Iterator[Look]:
    with _logs_of(stand, folder, cancel=True) as look:
        yield look


@contextlib.contextmanager
def out_of_time(stand: Stand, folder: Path) -> Iterator[Look]:
    with _logs_of(stand, folder, "--time=1", cancel=False) as look:
        yield look


def of_the_scheduler(words: str) -> Wrongs:
    """The scheduler's end comes first, and no launcher is counted as a rank."""

    def wrongs(seen: Seen) -> list[str]:
        first, said = seen.first, []
        if first.get("id") != "preempted-or-hangup":
            said.append(f"first cause {first.get('id', 'none')}")
        if words not in " ".join(seen.said.split()):
            said.append(f"nothing of “{words}”")
        if first.get("confidence", 0) < 0.8:
            said.append(f"confidence {first.get('confidence', 0):.0%}")
        size = seen.report.get("world", {}).get("size")
        ranks = len(seen.report.get("world", {}).get("ranks", ()))
        if size not in {None, RANKS} or ranks not in {0, RANKS}:
            said.append(f"a world of {size} with {ranks} ranks")
        return said

    return wrongs


# ---- batch scripts

HEAD = """#!/bin/bash
#SBATCH --job-name=vision
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node={tasks}
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task={cpus}
#SBATCH --time={time}
#SBATCH --output=%x-%j.out
{more}
"""
LOADED = "source /opt/conda/etc/profile.d/conda.sh && conda activate vision\n"
MEETS = (
    'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\n'
    "export MASTER_PORT=$((12000 + SLURM_JOB_ID % 10000))\n"
)
TORCHRUN = (
    "srun torchrun --nnodes=$SLURM_NNODES --nproc-per-node=4 --rdzv-id=$SLURM_JOB_ID"
    " --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT fit.py\n"
)
BY_TASKS = (
    "srun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE={world}"
    " exec python fit.py'\n"
)


def script(
    body: str,
    nodes: int = 2,
    tasks: int = 1,
    cpus: int = 32,
    time: str = "08:00:00",
    more: str = "",
) -> str:
    return HEAD.format(nodes=nodes, tasks=tasks, cpus=cpus, time=time, more=more) + body


FIT = "import torch\ntorch.cuda.set_device(int(__import__('os').environ['LOCAL_RANK']))\n"
WORKERS = "from torch.utils.data import DataLoader\nloader = DataLoader([], num_workers=8)\n"
ONE_EACH = "#SBATCH --gpus-per-task=1"
SCRIPTS: dict[str, tuple[str, str, str]] = {
    # name: (script, its program, a word of what must be told; "" where it is sound)
    "--export=NONE": (
        script(LOADED + MEETS + TORCHRUN, more="#SBATCH --export=NONE"),
        FIT,
        "--export",
    ),
    "WORLD_SIZE of the nodes": (
        script(LOADED + MEETS + BY_TASKS.format(world="$SLURM_NNODES"), tasks=4, cpus=8),
        FIT,
        "WORLD_SIZE",
    ),
    "srun & without wait": (
        script(LOADED + MEETS + TORCHRUN.replace("fit.py\n", "fit.py &\necho sent\n")),
        FIT,
        "wait",
    ),
    "--gpus-per-task=1 with set_device": (
        script(
            LOADED + MEETS + BY_TASKS.format(world="$SLURM_NTASKS"), tasks=4, cpus=8, more=ONE_EACH
        ).replace("#SBATCH --gpus-per-node=4\n", ""),
        FIT,
        "set_device",
    ),
    "no environment": (script(MEETS + TORCHRUN), FIT, "environment"),
    "--time=48": (script(LOADED + MEETS + TORCHRUN, time="48"), FIT, "48 min"),
    "workers as many as CPUs": (
        script(LOADED + MEETS + BY_TASKS.format(world="$SLURM_NTASKS"), tasks=4, cpus=8),
        WORKERS,
        "",
    ),
    "no flight recorder": (script(LOADED + MEETS + TORCHRUN), FIT, ""),
}


def of_a_script(name: str) -> Situation:
    text, program, word = SCRIPTS[name]

    @contextlib.contextmanager
    def made(stand: Stand, folder: Path) -> Iterator[Look]:
        (folder / "job.sh").write_text(text, encoding="utf-8")
        (folder / "fit.py").write_text(program, encoding="utf-8")
        typed = (sys.executable, "-m", "trainprobe", "ready", "--sbatch", "job.sh")

        def look(own: Path) -> Seen:
            env = {**users(stand), "SLURM_CONF": "/no/such"}
            argv = [*typed, *with_report(own)]
            return called(argv, own, env, cwd=folder)

        yield look

    def wrongs(seen: Seen) -> list[str]:
        plain = " ".join(seen.said.split())
        if not word:
            sure = [one["id"] for one in seen.report.get("causes", ()) if one["confidence"] >= 0.8]
            return [f"a sound script: {', '.join(sure)}"] if sure or seen.exit_code == 1 else []
        return _told(plain, word)

    return Situation(
        f"sbatch: {name}",
        f"`ready --sbatch`, a {'wrong' if word else 'sound'} script: {name}",
        "missed" if word else "“almost certain 95 %” wrong",
        f"“{word}” is told" if word else "not called wrong",
        made,
        wrongs,
    )


def _told(plain: str, word: str) -> list[str]:
    return [] if word in plain else [f"nothing of “{word}”"]


def _all(made: Sequence[str]) -> tuple[Situation, ...]:
    return tuple(of_a_script(name) for name in made)


TEXTS = (
    Situation(
        "explain: scancel",
        "`explain` of srun+torchrun logs after scancel",
        "srun tasks (launchers) counted as ranks; `unknown`",
        "`preempted-or-hangup`, cancelled; the launchers are no ranks",
        scancelled,
        of_the_scheduler("was cancelled"),
    ),
    Situation(
        "explain: time limit",
        "`explain` of srun+torchrun logs after the time limit",
        "64 % and advice to ask sacct",
        "`preempted-or-hangup`, time limit, 80 % or more",
        out_of_time,
        of_the_scheduler("time limit"),
    ),
    *_all(tuple(SCRIPTS)),
)
