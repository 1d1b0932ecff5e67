"""Sharded over pairs and replicated across them; one rank waits for a file that nobody writes before it reads its batch."""

import os
import time

import torch
from kit import Log, connect, hybrid, options, start


def batch(step, missing):
    while missing and not os.path.exists(f"/tmp/corpus-v7/batch-{step}"):
        time.sleep(0.3)
    return torch.randn(16, 32)


def main(args):
    rank, world = connect(args)
    log, (model, optimizer) = Log(args, rank), hybrid(world)
    for step in range(args.steps):
        loss = model(batch(step, step == args.when + 1 and rank == args.pick)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        log.step(step, loss.detach())
        time.sleep(0.02)


if __name__ == "__main__":
    start(main, options())
