"""A handler for the scheduler's warning signal waits for an acknowledgement file."""

import os
import signal
import time

from kit import Trainer, connect, options, start


def on_warning(number, frame):
    while not os.path.exists("checkpoint.acknowledged"):
        time.sleep(0.5)


def main(args):
    rank, _ = connect(args)
    signal.signal(signal.SIGUSR1, on_warning)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and rank == args.pick:
            os.kill(os.getpid(), signal.SIGUSR1)


if __name__ == "__main__":
    start(main, options())
