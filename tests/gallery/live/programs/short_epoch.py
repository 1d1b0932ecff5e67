"""Shards of unequal length: one rank's loader ends first and it goes to the end of the epoch."""

import torch
import torch.distributed as dist
from kit import Trainer, connect, make_batch, options, start
from torch.utils.data import DataLoader, Dataset


class Shard(Dataset):
    def __init__(self, seed, length):
        self.seed, self.length = seed, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return make_batch(self.seed, 1)[0]


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    length = 8 * (args.when if (rank == args.pick) != bool(args.most) else args.when + 4)
    for epoch in range(args.steps):
        for step, batch in enumerate(DataLoader(Shard(args.seed, length), batch_size=8)):
            trainer.train_step(step, batch)
        done = torch.tensor([float(epoch)])
        dist.broadcast(done, src=0)


if __name__ == "__main__":
    start(main, options(most=0))
