"""A rank runs a command to package samples and waits for it; the command does not end."""

import subprocess

from kit import Trainer, connect, options, start


def package(step):
    return subprocess.run(["sh", "-c", "tail -f /dev/null | gzip > samples.gz"], check=False).returncode


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and rank == args.pick:
            package(step)


if __name__ == "__main__":
    start(main, options())
