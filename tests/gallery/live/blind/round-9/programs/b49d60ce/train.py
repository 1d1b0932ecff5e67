import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from clips import ClipFolder


class ClipNet(nn.Module):
    def __init__(self, frames=24, classes=6):
        super().__init__()
        self.net = nn.Sequential(
            nn.AvgPool2d(2), nn.Conv2d(frames, 32, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes),
        )

    def forward(self, x):
        return self.net(x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="data")
    p.add_argument("--epochs", type=int, default=400)
    p.add_argument("--batch-size", type=int, default=8)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    dataset = ClipFolder(args.data, rank, world)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True, drop_last=True)
    model = DDP(ClipNet())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    for epoch in range(args.epochs):
        t0 = time.time()
        total = 0.0
        for i, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if rank == 0 and (i + 1) % 10 == 0:
                print(f"epoch {epoch} [{i + 1}/{len(loader)}] loss {total / (i + 1):.4f} {(time.time() - t0) / (i + 1) * 1000:.0f} ms/it", flush=True)
        if rank == 0:
            torch.save(model.module.state_dict(), "last.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
