"""A writer thread ends by an exception, and the loop goes on to put into its bounded queue."""

import queue
import threading

from kit import Trainer, connect, options, start


class Writer(threading.Thread):
    def __init__(self, limit):
        super().__init__(daemon=True)
        self.rows, self.limit = queue.Queue(maxsize=2), limit

    def run(self):
        for number in range(1 << 60):
            step, loss = self.rows.get()
            if number >= self.limit:
                raise ValueError(f"row {step}: cannot convert {loss!r}")


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    writer = Writer(args.when if rank == args.pick else 1 << 60)
    writer.start()
    for step in range(args.steps):
        loss = trainer.train_step(step)
        writer.rows.put((step, float(loss)))


if __name__ == "__main__":
    start(main, options())
