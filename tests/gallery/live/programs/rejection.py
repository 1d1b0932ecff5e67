"""One rank searches for a sample that does not exist, in pure Python."""

import random

from kit import Trainer, connect, options, start


def draw(low, high, seen):
    while True:
        candidate = random.randint(low, high)
        if candidate not in seen:
            return candidate


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    seen = set()
    limit = args.when if rank == args.pick else args.steps
    for step in range(args.steps):
        seen.add(draw(0, limit, seen))
        trainer.train_step(step)


if __name__ == "__main__":
    start(main, options())
