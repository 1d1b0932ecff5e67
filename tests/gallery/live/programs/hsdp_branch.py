"""Sharded over pairs and replicated across them; one rank leaves a block out of its forward."""

import time

import torch
from kit import Log, connect, hybrid, options, start


def main(args):
    rank, world = connect(args)
    log, (model, optimizer) = Log(args, rank), hybrid(world)
    for step in range(args.steps):
        rows = torch.randn(16, 32)
        for index, block in enumerate(model):
            if not (index == 1 and step == args.when and rank == args.pick):
                rows = block(rows)
        loss = rows.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        log.step(step, loss.detach())
        time.sleep(0.02)


if __name__ == "__main__":
    start(main, options())
