import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class UNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, c, 3, stride=2, padding=1), nn.ReLU())
        self.middle = nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(c, 1, 2, stride=2)

    def forward(self, x):
        low = self.down(x)
        return self.up(low + self.middle(low)) + x


def dice(logits, mask):
    p = logits.sigmoid()
    return 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=400)
    args = parser.parse_args()
    rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NPROCS"])
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = DDP(UNet())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for step in range(100):
            x = torch.randn(4, 1, 64, 64)
            loss = dice(model(x), (x > 0.5).float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seen = torch.tensor([loss.item()])
        dist.all_reduce(seen)
        print(f"rank {rank} epoch {epoch} dice loss {seen.item() / world:.4f}", flush=True)


if __name__ == "__main__":
    main()
