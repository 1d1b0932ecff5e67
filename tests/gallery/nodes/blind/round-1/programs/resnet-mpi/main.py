import argparse
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--batch-size", type=int, default=8)
    return parser.parse_args()


def setup():
    rank, world = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
    print(f"[{os.uname().nodename}] rank {rank} of {world}", flush=True)
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(hours=1))
    print(f"[{os.uname().nodename}] initialised", flush=True)
    return rank, world


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())

    def forward(self, x):
        return x + self.body(x)


def main():
    args = parse()
    rank, world = setup()
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=4), Block(8), Block(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 100))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.epochs):
        began = time.time()
        for step in range(200):
            x, y = torch.randn(args.batch_size, 3, 64, 64), torch.randint(100, (args.batch_size,))
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if rank == 0 and step % 10 == 0:
                speed = (step + 1) * args.batch_size * world / (time.time() - began)
                print(f"Epoch {epoch} [{step}/200] Loss {loss.item():.4f} {speed:.1f} img/s", flush=True)


if __name__ == "__main__":
    main()
