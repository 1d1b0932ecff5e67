import argparse
import socket

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import cluster


class ViT(nn.Module):
    def __init__(self, width=48, depth=2):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 16, stride=16)
        layer = nn.TransformerEncoderLayer(width, 4, width * 2, batch_first=True)
        self.body = nn.TransformerEncoder(layer, depth)
        self.head = nn.Linear(width, 200)

    def forward(self, x):
        return self.head(self.body(self.patch(x).flatten(2).transpose(1, 2)).mean(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="tiny")
    parser.parse_args()
    rank, world = cluster.get_rank(), cluster.get_world_size()
    print(f"{socket.gethostname()}: initializing ddp: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/{world}", flush=True)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    print(f"{socket.gethostname()}: ready", flush=True)
    model = DistributedDataParallel(ViT())
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(100_000):
        x, y = torch.randn(8, 3, 64, 64), torch.randint(200, (8,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
