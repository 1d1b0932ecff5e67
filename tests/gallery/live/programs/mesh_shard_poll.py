"""Tensor times data parallel; one rank polls for a shard that nobody writes."""

import os
import time

import torch
from kit import Log, TensorBlock, connect, options, start


def rows_of(index, missing):
    path = f"/tmp/corpus-v7/part-{index:05d}.bin"
    while missing and not os.path.exists(path):
        time.sleep(0.5)
    return torch.randn(8, 32)


def main(args):
    rank, world = connect(args)
    log, model = Log(args, rank), TensorBlock(world)
    for step in range(args.steps):
        loss = model.train_step(rows_of(step, step == args.when + 1 and rank == args.pick))
        log.step(step, loss)


if __name__ == "__main__":
    start(main, options())
