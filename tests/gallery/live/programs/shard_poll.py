"""One rank polls for a shard that nobody writes."""

import os
import time

from kit import Trainer, connect, options, start


def open_shard(folder, index):
    path = os.path.join(folder, f"part-{index:05d}.bin")
    while not os.path.exists(path):
        time.sleep(0.5)
    return path


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and (rank == args.pick) != bool(args.most):
            open_shard("/tmp/corpus-v7", step)


if __name__ == "__main__":
    start(main, options(most=0))
