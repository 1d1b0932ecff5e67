"""Two process groups of the same ranks; one rank reduces over them in the other order."""

import torch
import torch.distributed as dist
from kit import Trainer, connect, options, start


class Sync:
    def __init__(self, data, tensor, order):
        self.groups = (data, tensor) if order else (tensor, data)

    def __call__(self, values):
        for group in self.groups:
            dist.all_reduce(values, group=group)


def main(args):
    rank, world = connect(args)
    data, tensor = dist.new_group(list(range(world))), dist.new_group(list(range(world)))
    trainer = Trainer(args, rank)
    usual, other = Sync(data, tensor, True), Sync(data, tensor, rank != args.pick)
    for step in range(args.steps):
        trainer.train_step(step)
        (other if step == args.when else usual)(torch.rand(4))


if __name__ == "__main__":
    start(main, options())
