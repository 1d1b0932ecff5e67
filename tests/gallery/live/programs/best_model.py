"""The rank with the best validation loss broadcasts its weights' norm, the others reduce."""

import torch
import torch.distributed as dist
from kit import Trainer, connect, options, start


def keep_best(trainer, rank, owner):
    norm = torch.stack([parameter.detach().norm() for parameter in trainer.model.parameters()]).sum()
    if rank == owner:
        dist.broadcast(norm, src=owner)
    else:
        dist.all_reduce(norm, op=dist.ReduceOp.MAX)
    return norm


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when:
            keep_best(trainer, rank, args.pick)
            dist.barrier()


if __name__ == "__main__":
    start(main, options())
