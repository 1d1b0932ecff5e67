"""A loader worker waits inside __getitem__ for an index file that is never finished."""

import os
import time

from kit import Trainer, connect, make_batch, options, start
from torch.utils.data import DataLoader, Dataset


class Indexed(Dataset):
    def __init__(self, seed, missing):
        self.seed, self.missing = seed, missing

    def __len__(self):
        return 100_000

    def _wait_for_index(self, index):
        while not os.path.exists(f"index-{index}.ok"):
            time.sleep(1)

    def __getitem__(self, index):
        if index == self.missing:
            self._wait_for_index(index)
        return make_batch(self.seed, 1)[0]


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    data = Indexed(args.seed, 4 * args.when + 6 if rank == args.pick else -1)
    for step, batch in enumerate(DataLoader(data, batch_size=4, num_workers=2)):
        trainer.train_step(step, batch)


if __name__ == "__main__":
    start(main, options())
