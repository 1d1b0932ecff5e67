"""How a job is started: the end of its script, further files, and the words of its command.

`@PORT@` stands for a free port until the job is written.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

GUARD = '\n\nif __name__ == "__main__":\n    $main()\n'
SPAWN = """

def $worker(local_rank, count):
    os.environ.update(
        RANK=str(local_rank), LOCAL_RANK=str(local_rank), WORLD_SIZE=str(count),
        MASTER_ADDR="127.0.0.1", MASTER_PORT="@PORT@",
    )
    $main()


if __name__ == "__main__":
    import torch.multiprocessing as mp

    mp.spawn($worker, args=(@WORLD@,), nprocs=@WORLD@)
"""
PROCESSES = """

def $worker(local_rank, count):
    os.environ.update({"RANK": str(local_rank), "LOCAL_RANK": str(local_rank), "WORLD_SIZE": str(count)})
    os.environ.update({"MASTER_ADDR": "localhost", "MASTER_PORT": "@PORT@"})
    $main()


if __name__ == "__main__":
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=$worker, args=(n, @WORLD@)) for n in range(@WORLD@)]
    for child in children:
        child.start()
    for child in children:
        child.join()
"""
BASH = (
    """#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=@PORT@ WORLD_SIZE=@SAID@
for i in $(seq 0 @LAST@); do
  RANK=$i LOCAL_RANK=$i python @SCRIPT@ > rank_$i.log 2>&1 &
done
wait
""",
    """#!/usr/bin/env bash
set -u
mkdir -p logs
run() {
  RANK=$1 LOCAL_RANK=$1 WORLD_SIZE=@SAID@ MASTER_ADDR=localhost MASTER_PORT=@PORT@ python -u @SCRIPT@ 2>&1 | tee logs/out.$1 > /dev/null
}
for r in $(seq 1 @LAST@); do run $r & done
run 0 &
wait
echo "all done"
""",
)
POPEN = """import os
import subprocess
import sys

COUNT = @WORLD@


def start(rank):
    environ = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "@SAID@",
               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "@PORT@"}
    with open(f"stdout_{rank}.txt", "w") as out:
        return subprocess.Popen([sys.executable, "@SCRIPT@"], env=environ, stdout=out, stderr=subprocess.STDOUT)


procs = [start(rank) for rank in range(COUNT)]
codes = [proc.wait() for proc in procs]
sys.exit(max(codes))
"""
LAUNCHERS = (
    "torchrun",
    "torchrun-logs",
    "module",
    "spawn",
    "processes",
    "bash",
    "popen",
    "accelerate",
)


@dataclass(frozen=True)
class Launch:
    tail: str  # of the script
    command: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)


def launch(name: str, script: str, world: int, said: int, rng: random.Random) -> Launch:
    """The launch of a script by one of the launchers; `said` is the world size that ranks get."""
    number = str(world)
    if name in ("torchrun", "torchrun-logs", "module"):
        first = ("python", "-m", "torch.distributed.run") if name == "module" else ("torchrun",)
        meeting = rng.choice([("--standalone",), ("--master-port", "@PORT@")])
        logs = ("--log-dir", "elastic_logs", "--redirects", "3") if name == "torchrun-logs" else ()
        return Launch(GUARD, (*first, "--nproc-per-node", number, *meeting, *logs, script))
    if name == "accelerate":
        own = (
            "--multi_gpu",
            "--num_processes",
            number,
            "--num_machines",
            "1",
            "--mixed_precision",
            "no",
        )
        return Launch(
            GUARD,
            (
                "accelerate",
                "launch",
                *own,
                "--dynamo_backend",
                "no",
                "--main_process_port",
                "@PORT@",
                script,
            ),
        )
    if name == "lightning":
        return Launch(GUARD, ("python", script))
    values = {"@WORLD@": number, "@SAID@": str(said), "@LAST@": str(world - 1), "@SCRIPT@": script}

    def of(text: str) -> str:
        for key, value in values.items():
            text = text.replace(key, value)
        return text

    if name == "spawn":
        return Launch(of(SPAWN), ("python", script))
    if name == "processes":
        return Launch(of(PROCESSES), ("python", script))
    if name == "bash":
        return Launch(GUARD, ("bash", "run.sh"), {"run.sh": of(rng.choice(BASH))})
    return Launch(GUARD, ("python", "launch.py"), {"launch.py": of(POPEN)})
