"""One rank collects predictions with another operation than its peers."""

import torch
import torch.distributed as dist
from kit import Trainer, connect, options, start


def collect_by_gather(values, world):
    parts = [torch.empty_like(values) for _ in range(world)]
    dist.all_gather(parts, values)
    return torch.cat(parts)


def collect_by_scatter(values, world):
    out = torch.empty(values.numel() // world)
    dist.reduce_scatter(out, list(values.chunk(world)))
    return out


def main(args):
    rank, world = connect(args)
    trainer = Trainer(args, rank)
    collect = collect_by_scatter if rank == args.pick else collect_by_gather
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when:
            collect(torch.rand(8 * world), world)
            dist.barrier()


if __name__ == "__main__":
    start(main, options())
