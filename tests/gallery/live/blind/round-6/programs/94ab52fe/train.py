import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from frames import build


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--prefetch", type=int, default=4)
    p.add_argument("--warmup-epochs", type=int, default=2)
    p.add_argument("--warmup-batches", type=int, default=56)
    p.add_argument("--max-batches", type=int, default=40)
    return p.parse_args()


def main():
    a = parse()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    pipe, frames = build(rank, world, a.batch, a.prefetch)
    full = frames // world // a.batch
    net = nn.parallel.DistributedDataParallel(nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 144, 6)))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for epoch in range(a.epochs):
        n = min(full, a.warmup_batches if epoch < a.warmup_epochs else a.max_batches)
        for i, (x, y) in enumerate(pipe.limit(n)):
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.06)
            if rank == 0 and i % 10 == 0:
                print(f"epoch {epoch} [{i}/{n}] loss {loss.item():.3f}", flush=True)
        pipe.reset()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
