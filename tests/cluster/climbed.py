"""A training over several hosts, for tests of `diagnose --nodes`: SICK raises, hangs or goes on
at step 4, as HOW says.
"""

from __future__ import annotations

import os
import sys
import time

import torch
import torch.distributed as dist

HOW, SICK, STEPS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    assert int(os.environ["LOCAL_RANK"]) == rank - int(os.environ["GROUP_RANK"]) * int(
        os.environ["LOCAL_WORLD_SIZE"]
    )
    total = torch.ones(4)
    for step in range(STEPS):
        if rank == SICK and step == 4 and HOW == "raise":
            raise ValueError("no such sample")
        if rank == SICK and step == 4 and HOW == "hang":
            time.sleep(3600)
        dist.all_reduce(total)
        total /= dist.get_world_size()
        print(f"rank {rank} step {step}", flush=True)
        time.sleep(0.05)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
