"""Plain training. Nothing in it is wrong."""

from kit import Trainer, connect, options, start


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)


if __name__ == "__main__":
    start(main, options())
