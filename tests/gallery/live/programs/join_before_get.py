"""Evaluation in a child process whose large result is fetched only after join."""

import multiprocessing

from kit import Trainer, connect, options, start


def evaluate(queue, size):
    queue.put(bytes(size))


def evaluate_in_child(size):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=evaluate, args=(queue, size))
    child.start()
    child.join()
    return len(queue.get())


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when:
            evaluate_in_child(4 << 20 if rank == args.pick else 100)


if __name__ == "__main__":
    start(main, options())
