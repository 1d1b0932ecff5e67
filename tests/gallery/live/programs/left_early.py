"""One rank stops by a criterion of its own and returns; the others wait in the store for its summary."""

import torch.distributed as dist
from kit import Trainer, connect, options, start


def main(args):
    rank, world = connect(args)
    trainer = Trainer(args, rank, wrap=False)
    store = dist.distributed_c10d._get_default_store()
    for step in range(args.steps):
        trainer.train_step(step)
        if rank == args.pick and step == args.when:
            return
        if step > args.when:
            store.set(f"summary/{step}/{rank}", str(step))
            store.wait([f"summary/{step}/{other}" for other in range(world)])


if __name__ == "__main__":
    start(main, options())
