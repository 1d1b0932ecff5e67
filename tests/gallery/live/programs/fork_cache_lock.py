"""A cache with a lock that a background thread holds for long; loader workers are forked meanwhile and want the lock."""

import threading
import time

from kit import Trainer, connect, make_batch, options, start
from torch.utils.data import DataLoader, Dataset


class Cache:
    def __init__(self):
        self.lock = threading.Lock()
        self.entries = {}

    def refresh(self, seconds):
        while True:
            with self.lock:
                self.entries.clear()
                time.sleep(seconds)
            time.sleep(0.05)

    def get(self, index):
        with self.lock:
            return self.entries.setdefault(index, index)


class Samples(Dataset):
    def __init__(self, seed, cache, length):
        self.seed, self.cache, self.length = seed, cache, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.cache is not None:
            self.cache.get(index)
        return make_batch(self.seed, 1)[0]


def main(args):
    rank, _ = connect(args)
    trainer, cache = Trainer(args, rank), Cache()
    for step, batch in enumerate(DataLoader(Samples(args.seed, None, 4 * args.when), batch_size=4)):
        trainer.train_step(step, batch)
    if rank == args.pick:
        threading.Thread(target=cache.refresh, args=(1.5,), daemon=True).start()
        time.sleep(0.2)
    for step, batch in enumerate(DataLoader(Samples(args.seed, cache, 100_000), batch_size=4, num_workers=1, multiprocessing_context="fork")):
        trainer.train_step(step, batch)


if __name__ == "__main__":
    start(main, options())
