"""A native call that keeps the interpreter lock and does not come back."""

import ctypes

from kit import Trainer, connect, options, start

libc = ctypes.PyDLL(None)


def wait_for_device(seconds):
    libc.sleep(seconds)


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and rank == args.pick:
            wait_for_device(100_000)


if __name__ == "__main__":
    start(main, options())
