"""mp.spawn at module level, without a guard."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

print("preparing the index", flush=True)
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29511")


def train(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    total = torch.ones(1)
    dist.all_reduce(total)
    print(f"[{rank}] {total.item()}", flush=True)


mp.spawn(train, args=(2,), nprocs=2)
