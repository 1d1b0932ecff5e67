"""Tensor parallel times data parallel: a block sharded by DTensor over pairs of ranks, gradients averaged across the pairs."""

import torch
from kit import Log, TensorBlock, connect, options, start


def main(args):
    rank, world = connect(args)
    log, model = Log(args, rank), TensorBlock(world)
    for step in range(args.steps):
        loss = model.train_step(torch.randn(8, 32))
        log.step(step, loss)


if __name__ == "__main__":
    start(main, options())
