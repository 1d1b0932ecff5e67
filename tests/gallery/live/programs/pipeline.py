"""A pipeline over the ranks; the stage before the last micro-batch leaves its send out."""

import torch
import torch.distributed as dist
from kit import Log, connect, options, start
from torch import nn


def forward_stage(stage, rank, world, micro_batches, skip):
    for micro in range(micro_batches):
        hidden = torch.randn(4, 16)
        if rank > 0:
            dist.recv(hidden, src=rank - 1)
        hidden = stage(hidden)
        if rank < world - 1 and not (skip and micro == micro_batches - 1):
            dist.send(hidden.detach(), dst=rank + 1)
    return hidden


def main(args):
    rank, world = connect(args)
    log, stage = Log(args, rank), nn.Sequential(nn.Linear(16, 16), nn.Tanh())
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.01)
    for step in range(args.steps):
        hidden = forward_stage(stage, rank, world, 4, rank == args.pick and step == args.when)
        loss = hidden.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        log.step(step, loss.detach())
        dist.barrier()


if __name__ == "__main__":
    start(main, options())
