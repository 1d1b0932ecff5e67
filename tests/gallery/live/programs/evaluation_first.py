"""Rank 0 evaluates while the others wait at a barrier."""

import torch
import torch.distributed as dist
from kit import Trainer, connect, make_batch, options, start


@torch.no_grad()
def evaluate(model, batches, seed):
    total = 0.0
    for number in range(batches):
        total += float(model(make_batch(seed, 16)))
        if number % 500 == 499:
            print(f"evaluated {number + 1} of {batches}", flush=True)
    return total / batches


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when:
            if rank == args.pick:
                evaluate(trainer.model.module, 10_000_000, args.seed)
            dist.barrier()


if __name__ == "__main__":
    start(main, options())
