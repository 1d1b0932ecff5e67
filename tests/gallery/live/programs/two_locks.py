"""A prefetching thread and the loop take two locks in opposite order."""

import threading
import time

from kit import Trainer, connect, make_batch, options, start


class Prefetcher:
    def __init__(self, seed, risky):
        self.seed, self.risky = seed, risky
        self.buffer_lock, self.stats_lock = threading.Lock(), threading.Lock()
        self.buffer, self.served = [], 0
        threading.Thread(target=self._fill, daemon=True).start()

    def _fill(self):
        while True:
            with self.buffer_lock:
                self.buffer.append(make_batch(self.seed))
                if self.served >= self.risky:
                    time.sleep(0.3)
                    with self.stats_lock:
                        self.served += 0
            while len(self.buffer) > 4:
                time.sleep(0.01)

    def take(self):
        while True:
            with self.stats_lock:
                self.served += 1
                if self.served > self.risky:
                    time.sleep(0.3)
                with self.buffer_lock:
                    if self.buffer:
                        return self.buffer.pop()
            time.sleep(0.001)


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    batches = Prefetcher(args.seed, args.when if rank == args.pick else 1 << 60)
    for step in range(args.steps):
        trainer.train_step(step, batches.take())


if __name__ == "__main__":
    start(main, options())
