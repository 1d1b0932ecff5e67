"""All ranks write a row to one file under a lock each step."""

import filelock
from kit import Trainer, connect, options, start


def main(args):
    rank, _ = connect(args)
    trainer, lock = Trainer(args, rank), filelock.FileLock("results.lock", poll_interval=0.005)
    for step in range(args.steps):
        loss = trainer.train_step(step)
        with lock, open("results.csv", "a") as results:
            results.write(f"{rank},{step},{float(loss)}\n")


if __name__ == "__main__":
    start(main, options())
