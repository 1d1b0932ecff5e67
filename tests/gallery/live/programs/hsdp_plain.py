"""Sharded over pairs of ranks and replicated across them (FSDP2 on a mesh of two dimensions)."""

import time

import torch
from kit import Log, connect, hybrid, options, start


def main(args):
    rank, world = connect(args)
    log, (model, optimizer) = Log(args, rank), hybrid(world)
    for step in range(args.steps):
        loss = model(torch.randn(16, 32)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        log.step(step, loss.detach())
        time.sleep(0.02)


if __name__ == "__main__":
    start(main, options())
