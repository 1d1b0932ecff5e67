"""Two process groups of the same ranks; in one case a rank reduces over them in the other order."""

import torch
import torch.distributed as dist
from kit import Trainer, connect, options, start


def synchronise(values, data, tensor, sharded):
    if sharded:
        dist.all_reduce(values, group=tensor)
        dist.all_reduce(values, group=data)
    else:
        dist.all_reduce(values, group=data)
        dist.all_reduce(values, group=tensor)


def main(args):
    rank, world = connect(args)
    data, tensor = dist.new_group(list(range(world))), dist.new_group(list(range(world)))
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        synchronise(torch.rand(4), data, tensor, sharded=rank == args.pick and step == args.when)


if __name__ == "__main__":
    start(main, options())
