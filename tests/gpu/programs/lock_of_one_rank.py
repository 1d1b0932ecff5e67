"""Ranks that share one GPU and meet by gloo; rank 1 waits for a lock that nobody gives back."""

import fcntl
import os
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

HOLD = "import fcntl, sys, time; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); time.sleep(600)"


def cached(path):
    with open(path, "a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    path = os.path.join(tempfile.gettempdir(), f"tokens-{os.getppid()}.lock")
    if rank == 0:
        holder = subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE)
        holder.stdout.readline()
    model = DistributedDataParallel(nn.Linear(256, 1).cuda(), device_ids=[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1_000_000):
        if step == 20 and rank == 1:
            cached(path)
        loss = model(torch.randn(64, 256, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"rank {rank} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
