"""A training over the ranks of a SLURM step or of a launcher: rank SICK takes a lock twice at
step 3 (-1: nobody does). What each rank has done stands in FOLDER.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def take_the_lock_twice(folder: Path) -> None:
    path = folder / "shared.lock"
    with path.open("w") as first, path.open("w") as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        fcntl.flock(second, fcntl.LOCK_EX)


def main() -> None:
    os.environ.setdefault("RANK", os.environ.get("SLURM_PROCID", ""))
    os.environ.setdefault("WORLD_SIZE", os.environ.get("SLURM_NTASKS", ""))
    folder, sick = Path(sys.argv[1]), int(sys.argv[2])
    rank = int(os.environ["RANK"])
    (folder / f"began-{rank}").touch()
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    weights = torch.ones(4)
    for step in range(100_000):
        if rank == sick and step == 3:
            (folder / "sick").touch()
            take_the_lock_twice(folder)
        dist.all_reduce(weights)
        weights /= dist.get_world_size()
        print(f"rank {rank} step {step}", flush=True)
        (folder / f"step-{rank}").write_text(str(step))
        time.sleep(0.05)


if __name__ == "__main__":
    main()
