"""A soft lock file that another machine left behind."""

import filelock
from kit import Trainer, connect, options, start


class Store:
    def __init__(self, path):
        self.lock = filelock.SoftFileLock(path + ".lock")

    def append(self, row):
        with self.lock, open("rows.jsonl", "a") as rows:
            rows.write(f"{row}\n")


def main(args):
    rank, _ = connect(args)
    trainer, store = Trainer(args, rank), Store("shared-rows")
    for step in range(args.steps):
        loss = trainer.train_step(step)
        if step == args.when and rank == args.pick:
            store.append(float(loss))


if __name__ == "__main__":
    start(main, options())
