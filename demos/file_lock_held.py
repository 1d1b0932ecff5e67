"""Each epoch one rank refreshes a feature cache under a lock."""

import fcntl
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def refresh_cache(path):
    with open(path, "a") as cache:
        fcntl.flock(cache, fcntl.LOCK_EX)
        cache.write("ready\n")


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(100_000):
        loss = model(torch.randn(16, 64)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step == 8 and rank == 1:
            refresh_cache("features.cache")
        time.sleep(0.05)


if __name__ == "__main__":
    main()
