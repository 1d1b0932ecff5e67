import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from weights import ensure


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", required=True)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print(f"rank {rank} on {os.uname().nodename} up", flush=True)
    folder = ensure(args.weights, rank)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    for part, layer in enumerate(model[::2]):
        layer.weight.data.copy_(torch.load(os.path.join(folder, f"part-{part}.pt"))[f"w{part}"])
    print(f"rank {rank} weights loaded", flush=True)
    model = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(1_000_000):
        x = torch.randn(32, 64)
        loss = (model(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
