"""A child process is forked while a thread writes the audit log under its lock; the child logs too."""

import multiprocessing
import threading
import time

from kit import Trainer, connect, options, start

LOCK = threading.RLock()


def audit(line):
    with LOCK, open("audit.log", "a") as log:
        log.write(line + "\n")


def chatter():
    while True:
        with LOCK:
            time.sleep(1)


def score(results):
    audit("scoring")
    results.put(1.0)


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    context = multiprocessing.get_context("fork")
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and rank == args.pick:
            threading.Thread(target=chatter, daemon=True).start()
            time.sleep(0.3)
            results = context.Queue()
            child = context.Process(target=score, args=(results,), daemon=True)
            child.start()
            child.join()


if __name__ == "__main__":
    start(main, options())
