import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from snapshot import Snapshotter


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    width = 1024
    net = nn.Sequential(nn.Linear(128, width), nn.GELU(), nn.Linear(width, width), nn.GELU(),
                        nn.Linear(width, width), nn.GELU(), nn.Linear(width, 128))
    model = DDP(net)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    snap = Snapshotter(os.environ["RUN_DIR"], net, opt)
    gen = torch.Generator().manual_seed(rank)
    mix = torch.randn(128, 128, generator=torch.Generator().manual_seed(9)) / 11
    t0 = time.time()
    for step in range(1, 100001):
        x = torch.randn(96, 128, generator=gen)
        loss = (model(x) - torch.tanh(x @ mix)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            snap.snapshot(step)
            if rank == 0:
                print(f"step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s for 10 steps", flush=True)
            t0 = time.time()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
