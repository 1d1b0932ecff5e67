"""A function that averages a metric returns before the collective when the value is not finite."""

import math

import torch
import torch.distributed as dist
from kit import Trainer, connect, options, start


def mean_over_ranks(value):
    if not math.isfinite(value):
        return value
    total = torch.tensor([value, 1.0])
    dist.all_reduce(total)
    return float(total[0] / total[1])


def main(args):
    rank, world = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        loss = float(trainer.train_step(step))
        if step % 5 == 0:
            perplexity = math.exp(loss) if not (rank == args.pick and step >= args.when) else math.inf
            mean_over_ranks(perplexity)
            gathered = [torch.zeros(3) for _ in range(world)]
            dist.all_gather(gathered, torch.rand(3))


if __name__ == "__main__":
    start(main, options())
