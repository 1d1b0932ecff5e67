"""Large tensors are gathered on all ranks again and again."""

import torch
import torch.distributed as dist
from kit import Trainer, connect, options, start


def main(args):
    rank, world = connect(args)
    trainer = Trainer(args, rank)
    mine = torch.rand(1 << 22)
    parts = [torch.empty_like(mine) for _ in range(world)]
    for step in range(args.steps):
        dist.all_gather(parts, mine)
        trainer.train_step(step)


if __name__ == "__main__":
    start(main, options())
