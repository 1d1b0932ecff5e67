"""Tensor times data parallel; a rank whose loss looks bad leaves the average across pairs out and goes on to the checkpoint's barrier."""

import torch
import torch.distributed as dist
from kit import Log, TensorBlock, connect, options, start


def main(args):
    rank, world = connect(args)
    log, model = Log(args, rank), TensorBlock(world)
    for step in range(args.steps):
        loss = model.train_step(torch.randn(8, 32))
        if step == args.when and rank == args.pick:
            loss = loss * float("nan")
        if torch.isfinite(loss):
            dist.all_reduce(loss, group=model.mesh.get_group("data"))
        dist.barrier()
        log.step(step, loss)


if __name__ == "__main__":
    start(main, options())
