"""Step times differ at random from rank to rank."""

import random
import time

from kit import Trainer, connect, make_batch, options, start


def augment(batch):
    until = time.time() + random.choice([0.01, 0.05, 0.2])
    while time.time() < until:
        batch = batch.roll(1, 0)
        time.sleep(0.004)
    return batch


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step, augment(make_batch(args.seed)))


if __name__ == "__main__":
    start(main, options())
