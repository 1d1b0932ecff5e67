"""One rank prepares features under a filelock that a program outside the job holds."""

import filelock
import torch.distributed as dist
from kit import Trainer, connect, options, start


def prepare(path):
    with filelock.FileLock(path + ".lock"), open(path, "a") as features:
        features.write("ready\n")


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.when):
        trainer.train_step(step)
    if rank == args.pick:
        prepare("features.arrow")
    dist.barrier()
    for step in range(args.when, args.steps):
        trainer.train_step(step)


if __name__ == "__main__":
    start(main, options())
