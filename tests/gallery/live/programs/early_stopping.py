"""Early stopping decided by each rank alone; who has stopped exits, the others wait in a monitored barrier at the epoch's end."""

import os
import sys
from datetime import timedelta

import torch.distributed as dist
from kit import Trainer, connect, options, start


def main(args):
    rank, world = connect(args)
    trainer = Trainer(args, rank, wrap=False)
    store = dist.PrefixStore("epochs", dist.distributed_c10d._get_default_store())
    patience = args.when if rank == args.pick else args.steps
    for step in range(args.steps):
        trainer.train_step(step)
        if step == patience:
            print("no improvement, stopping", flush=True)
            sys.stdout.flush()
            os._exit(0)
        if step == args.when + 1:
            store.add("arrived", 1)
            while store.add("arrived", 0) < world:
                store.wait(["next"], timedelta(hours=1))


if __name__ == "__main__":
    start(main, options())
