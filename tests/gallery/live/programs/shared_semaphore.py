"""A semaphore in shared memory guards the scratch space; the process that held it has died with it."""

import multiprocessing
import os

from kit import Trainer, connect, options, start


def use_scratch(semaphore):
    semaphore.acquire()
    os._exit(0)


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    context = multiprocessing.get_context("fork")
    semaphore = context.BoundedSemaphore(1)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and rank == args.pick:
            first = context.Process(target=use_scratch, args=(semaphore,))
            first.start()
            first.join()
        with semaphore:
            trainer.scratch = step


if __name__ == "__main__":
    start(main, options())
