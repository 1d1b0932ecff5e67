"""The checkpoint goes to a mounted file system that has stopped answering; the others wait at a barrier."""

import torch
import torch.distributed as dist
from kit import Trainer, connect, options, start


def save_checkpoint(trainer, step):
    torch.save({"step": step, "model": trainer.model.state_dict()}, f"mnt/checkpoint-{step}.pt")


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when:
            if rank == args.pick:
                save_checkpoint(trainer, step)
            dist.barrier()


if __name__ == "__main__":
    start(main, options())
