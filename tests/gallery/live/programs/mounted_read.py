"""One rank reads its shard from a mounted file system that has stopped answering."""

import os

from kit import Trainer, connect, options, start


def load_shard(folder, step):
    with open(os.path.join(folder, "shard.bin"), "rb") as shard:
        return shard.read()


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and rank == args.pick:
            load_shard("mnt", step)


if __name__ == "__main__":
    start(main, options())
