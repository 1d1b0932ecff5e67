"""A forgotten breakpoint on one rank."""

import pdb  # noqa: T100

from kit import Trainer, connect, options, start


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        loss = trainer.train_step(step)
        if step == args.when and rank == args.pick:
            pdb.set_trace()  # noqa: T100
        trainer.last = loss


if __name__ == "__main__":
    start(main, options())
