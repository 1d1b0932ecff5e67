"""Average a regression model over ranks; one rank waits for a data shard that nobody will ever write.

`--spin` makes it look for the shard without a pause, as some home-made caches do.
"""

from __future__ import annotations

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn


def shard_is_ready(path: str) -> bool:
    return os.path.exists(path)


def wait_for_shard(path: str, spin: bool) -> None:
    while not shard_is_ready(path):
        if not spin:
            time.sleep(3600)


def train(args: argparse.Namespace) -> None:
    rank = dist.get_rank()
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(args.steps):
        if step == args.when and rank == args.culprit:
            wait_for_shard(f"/nonexistent/shards/part-{step:05d}.bin", args.spin)
        features = torch.randn(16, 32)
        loss = (model(features) - features.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        time.sleep(0.01)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=12)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--spin", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    train(args)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
