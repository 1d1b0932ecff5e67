import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ops import load_ops

WARMUP = 150


def batches(seed, batch=32, dim=48):
    g = torch.Generator().manual_seed(seed)
    w = torch.randn(dim, 1, generator=torch.Generator().manual_seed(0))
    while True:
        x = torch.randn(batch, dim, generator=g)
        yield x, (x @ w).tanh() + 0.05 * torch.randn(batch, 1, generator=g)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(3)
    model = DDP(nn.Sequential(nn.Linear(48, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 1)))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.MSELoss()
    data = batches(rank + 1)
    t0 = time.time()
    for step in range(60000):
        if step == WARMUP:
            ops = load_ops()
            criterion = lambda a, b: ops.fused_huber(a, b, 1.0)
        x, y = next(data)
        loss = criterion(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 50 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
