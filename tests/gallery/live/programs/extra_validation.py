"""In validation one rank sums its token count once more, by a gather, for its own log line."""

import torch
import torch.distributed as dist
from kit import Trainer, connect, make_batch, options, start


@torch.no_grad()
def validate(trainer, rank, verbose):
    total = torch.zeros(2)
    for _ in range(3):
        total += torch.tensor([float(trainer.model.module(make_batch(trainer.args.seed))), 1.0])
    dist.all_reduce(total)
    if rank == verbose:
        parts = [torch.zeros(2) for _ in range(dist.get_world_size())] if rank == 0 else None
        dist.gather(total, parts, dst=0)
        print("validation", float(total[0] / total[1]), flush=True)


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when:
            validate(trainer, rank, args.pick)
            dist.barrier()


if __name__ == "__main__":
    start(main, options())
