"""One rank waits for a lock that a program outside holds; another has been stopped."""

import fcntl

from kit import Trainer, connect, options, start


def append(path, value):
    with open(path, "a") as results:
        fcntl.flock(results, fcntl.LOCK_EX)
        results.write(f"{value}\n")


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        loss = trainer.train_step(step)
        if step == args.when and rank == args.pick:
            append("features.cache", float(loss))


if __name__ == "__main__":
    start(main, options())
