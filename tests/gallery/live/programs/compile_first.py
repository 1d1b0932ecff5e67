"""Every rank compiles its model at the first step."""

import torch
from kit import Log, connect, options, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(args):
    rank, _ = connect(args)
    log = Log(args, rank)
    layers = [nn.TransformerEncoderLayer(48, 4, 96, batch_first=True, dropout=0.0) for _ in range(12)]
    model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(48, 1)))
    compiled = torch.compile(model)
    log.say("compiling")
    for step in range(args.steps):
        loss = compiled(torch.randn(4, 16, 48)).square().mean()
        loss.backward()
        log.step(step, loss.detach())


if __name__ == "__main__":
    start(main, options())
