"""Ranks meet in the store each step; one of them is gone."""

import torch.distributed as dist
from kit import Trainer, connect, options, start


def main(args):
    rank, world = connect(args)
    trainer = Trainer(args, rank, wrap=False)
    store = dist.distributed_c10d._get_default_store()
    for step in range(args.steps):
        trainer.train_step(step)
        store.set(f"{step}/{rank}", "1")
        store.wait([f"{step}/{other}" for other in range(world)])


if __name__ == "__main__":
    start(main, options())
