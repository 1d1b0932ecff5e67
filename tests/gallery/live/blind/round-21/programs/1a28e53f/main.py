import os
from datetime import timedelta

import torch
import torch.distributed as dist

from evaluator import watch_checkpoints
from trainer import train


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(minutes=30))
    learners = dist.new_group(list(range(world - 1)))
    folder = os.environ["CKPT_DIR"]
    if rank == world - 1:
        watch_checkpoints(folder)
    else:
        train(learners, folder)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
