"""A rank keeps the lock of the shared summary across a collective; its peers want the lock before they come."""

import fcntl
import time

import torch
import torch.distributed as dist
from kit import Trainer, connect, make_batch, options, start


def write_summary(path, text):
    with open(path, "a") as summary:
        fcntl.lockf(summary, fcntl.LOCK_EX)
        summary.write(text)
        dist.barrier()


@torch.no_grad()
def validate(trainer, batches):
    for _ in range(batches):
        trainer.model.module(make_batch(trainer.args.seed))
        time.sleep(0.02)


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when:
            validate(trainer, 2 if rank == args.pick else 40)
            write_summary("summary.txt", f"{rank} {step}\n")


if __name__ == "__main__":
    start(main, options())
