"""A text filter whose regular expression backtracks without end on one line."""

import re

from kit import Trainer, connect, options, start

REPEATED = re.compile(r"^(\w+\s?)*\.$")


def keep(line):
    return REPEATED.match(line) is None


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        keep("a short line" if rank != args.pick or step < args.when else "word" * 20 + "!")


if __name__ == "__main__":
    start(main, options())
