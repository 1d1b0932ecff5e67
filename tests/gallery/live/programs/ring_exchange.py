"""A ring in which a rank should send before it receives; all receive first from a certain step on."""

import torch
import torch.distributed as dist
from kit import Trainer, connect, options, start


def shift(values, rank, world, receive_first):
    left, right = (rank - 1) % world, (rank + 1) % world
    incoming = torch.empty_like(values)
    if receive_first:
        dist.recv(incoming, src=left)
        dist.send(values, dst=right)
    else:
        dist.send(values, dst=right)
        dist.recv(incoming, src=left)
    return incoming


def main(args):
    rank, world = connect(args)
    trainer = Trainer(args, rank, wrap=False)
    for step in range(args.steps):
        trainer.train_step(step)
        shift(torch.rand(8), rank, world, rank % 2 == 1 or step >= args.when)


if __name__ == "__main__":
    start(main, options())
