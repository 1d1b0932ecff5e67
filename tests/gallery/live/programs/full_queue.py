"""Predictions go to a writer process over a bounded queue; the writer has stopped reading."""

import multiprocessing
import time

from kit import Trainer, connect, options, start


def write_rows(queue, most):
    for _ in range(most):
        queue.get()
    while True:
        time.sleep(60)


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    context = multiprocessing.get_context("spawn" if args.seed % 2 and not args.nproc else "fork")
    queue = context.Queue(maxsize=2)
    writer = context.Process(target=write_rows, args=(queue, args.when if rank == args.pick else 10_000_000), daemon=True)
    writer.start()
    for step in range(args.steps):
        loss = trainer.train_step(step)
        queue.put((step, float(loss)))


if __name__ == "__main__":
    start(main, options())
