"""Gradient accumulation: three of four micro-batches without synchronising."""

import contextlib
import time

from kit import Trainer, connect, make_batch, options, start


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        for micro in range(3):
            with trainer.model.no_sync() if micro < 3 else contextlib.nullcontext():
                trainer.model(make_batch(args.seed)).backward()
            time.sleep(0.02)
        trainer.train_step(step)


if __name__ == "__main__":
    start(main, options())
