"""The rank that saves calls a barrier of its own."""

import torch
import torch.distributed as dist
from kit import Trainer, connect, options, start


def save(model, step, path):
    torch.save({"step": step, "model": model.state_dict()}, path)
    dist.barrier()


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    chief = args.pick
    for step in range(args.steps):
        trainer.train_step(step)
        if rank == chief and step == args.when:
            save(trainer.model, step, f"checkpoint-{step}.pt")


if __name__ == "__main__":
    start(main, options())
