"""Predictions are gathered from all ranks without padding; one rank holds fewer rows than the others expect."""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn


def collect_predictions(local: torch.Tensor) -> torch.Tensor:
    buffers = [torch.zeros_like(local) for _ in range(dist.get_world_size())]
    dist.all_gather(buffers, local)
    return torch.cat(buffers)


def rows_for(rank: int, step: int, short_rank: int, short_step: int) -> int:
    return 3 if (rank, step) == (short_rank, short_step) else 5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=7)
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 4)))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for step in range(args.steps):
        inputs = torch.randn(rows_for(rank, step, args.culprit, args.when), 6)
        outputs = model(inputs)
        outputs.logsumexp(1).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        everything = collect_predictions(outputs.detach())
        if rank == 0 and step % 5 == 0:
            print(f"step {step}: {everything.shape[0]} predictions", flush=True)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
