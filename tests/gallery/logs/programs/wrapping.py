"""DDP that misses gradients ; collectives that differ in shape or kind; a loss that is no number."""

import sys

import torch
import torch.distributed as dist
from kit import connect, options, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Two(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.first, self.second, self.spare = nn.Linear(12, 12), nn.Linear(12, 1), nn.Linear(12, 1)

    def forward(self, rows):
        return self.second(self.first(rows)) if self.kind == "unused" else self.second(self.first(rows)) + self.spare(rows)


def main(args):
    rank, world = connect(args)
    model = Two(args.kind) if args.kind in ("shape", "order", "gather", "monitored") else DistributedDataParallel(Two(args.kind))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e30 if args.kind == "nan" else 0.01)
    for step in range(args.steps):
        loss = model(torch.randn(6, 12, requires_grad=True)).pow(2).mean()
        if args.kind == "nan" and not torch.isfinite(loss):
            print(f"Loss is {loss.item()}, stopping training", flush=True)
            sys.exit(1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"iter {step:4d} loss {loss.item():.4g}", flush=True)
        if step == args.when:
            if args.kind == "shape":
                dist.all_reduce(torch.zeros(7 if rank == args.pick else 5))
            elif args.kind == "order" and rank == args.pick:
                dist.broadcast(torch.zeros(5), 0)
            elif args.kind == "order":
                dist.all_reduce(torch.zeros(5))
            elif args.kind == "gather":
                parts = [torch.zeros(4) for _ in range(world)]
                dist.all_gather(parts, torch.zeros(5 if rank == args.pick else 4))
            elif args.kind == "monitored" and rank != args.pick:
                import datetime

                dist.monitored_barrier(timeout=datetime.timedelta(seconds=4), wait_all_ranks=True)


if __name__ == "__main__":
    args = options(kind="unused")
    start(main, args)
