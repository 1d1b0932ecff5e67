"""A sharded stream whose lines do not divide evenly; after the loop each rank validates and meets the others at a barrier."""

import torch
import torch.distributed as dist
from kit import Trainer, connect, make_batch, options, start
from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset):
    def __init__(self, seed, first, last):
        self.seed, self.first, self.last = seed, first, last

    def __iter__(self):
        for _ in range(self.first, self.last):
            yield make_batch(self.seed, 1)[0]


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    lines = 4 * args.when + (0 if rank == args.pick else 9)
    step = 0
    for batch in DataLoader(Lines(args.seed, 0, lines), batch_size=4, num_workers=1):
        trainer.train_step(step, batch)
        step += 1
    with torch.no_grad():
        trainer.model.module(make_batch(args.seed))
    dist.barrier()


if __name__ == "__main__":
    start(main, options())
