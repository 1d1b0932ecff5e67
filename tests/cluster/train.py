"""A training over the ranks of a SLURM step, for tests of `attach --slurm`: rank SICK waits at
step 3 for a lock that it holds itself.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time

import torch
import torch.distributed as dist

FOLDER, SICK = sys.argv[1], int(sys.argv[2])


def take_the_lock_twice() -> None:
    path = os.path.join(FOLDER, "shared.lock")
    with open(path, "w") as first, open(path, "w") as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        fcntl.flock(second, fcntl.LOCK_EX)


def main() -> None:
    rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    dist.init_process_group(
        "gloo", init_method=f"tcp://{os.environ['MASTER']}:29655", rank=rank, world_size=world
    )
    total = torch.ones(4)
    for step in range(100_000):
        if rank == SICK and step == 3:
            take_the_lock_twice()
        dist.all_reduce(total)
        print(f"rank {rank} step {step}", flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
