"""Rank 0 writes a large checkpoint in pieces; the others wait for it at a barrier."""

import os
import time

import torch.distributed as dist
from kit import Trainer, connect, options, start


def save(path, pieces):
    with open(path, "wb") as file:
        for _ in range(pieces):
            file.write(os.urandom(1 << 20))
            file.flush()
            os.fsync(file.fileno())
            if file.tell() >= 64 << 20:
                file.seek(0)
            time.sleep(0.05)


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when:
            if rank == args.pick:
                save("checkpoint.pt", 100_000)
            dist.barrier()


if __name__ == "__main__":
    start(main, options())
