import argparse
import os
import random
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a, self.b = nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, h):
        h = h + torch.sigmoid(self.b(h)) * torch.tanh(self.a(h))
        return (h - h.mean(1, keepdim=True)) * torch.rsqrt(h.var(1, keepdim=True) + 1e-5)


class Frontend(nn.Module):
    def __init__(self, d=24, n=6):
        super().__init__()
        self.inp, self.out = nn.Linear(16, d), nn.Linear(d, 8)
        self.blocks = nn.ModuleList(Block(d) for _ in range(n))

    def forward(self, x):
        h = torch.nn.functional.silu(self.inp(x))
        for b in self.blocks:
            h = b(h)
        return self.out(h).mean(1)


def lengths(rank, step):
    """Curriculum: a longer bucket is opened from time to time, at a different moment on each rank."""
    opened = 1 + (step + 60 * rank) // 120
    return 16 + 8 * random.Random(step * 7 + rank).randrange(min(opened, 12))


def run(rank, world, steps):
    torch.set_num_threads(1)
    torch._dynamo.config.cache_size_limit = 64
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    model = Frontend()
    fwd = torch.compile(model, dynamic=False, backend="aot_eager")
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    t0 = time.time()
    for step in range(steps):
        x = torch.randn(4, lengths(rank, step), 16)
        loss = fwd(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        opt.step()
        time.sleep(0.1)
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} {time.time() - t0:.0f}s", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--steps", type=int, default=1000)
    args = p.parse_args()
    mp.spawn(run, args=(args.ranks, args.steps), nprocs=args.ranks)
