import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from clips import make_loader


class ClipNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(16, 64, 5, padding=2), nn.BatchNorm1d(64), nn.ReLU(),
            nn.Conv1d(64, 96, 5, padding=2), nn.BatchNorm1d(96), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1))
        self.head = nn.Linear(96, classes)

    def forward(self, x):
        return self.head(self.conv(x).flatten(1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shards", required=True)
    p.add_argument("--steps", type=int, default=50000)
    p.add_argument("--batch-size", type=int, default=8)
    a = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)

    model = DDP(ClipNet())
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loader = iter(make_loader(a.shards, a.batch_size))
    t0 = time.time()
    for step in range(a.steps):
        x, y = next(loader)
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 25 == 0 and rank == 0:
            print(f"[{time.time() - t0:7.1f}s] step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
