import itertools
import logging
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from biggraph.buckets import Buckets


class Dot(nn.Module):
    def __init__(self, n=5000, d=64):
        super().__init__()
        self.e, self.r = nn.Embedding(n, d), nn.Embedding(n, d)

    def forward(self, edges):
        pos = (self.e(edges[:, 0]) * self.r(edges[:, 1]) * self.e(edges[:, 2])).sum(-1)
        neg = (self.e(edges[:, 0]) * self.r(edges[:, 1]) * self.e(edges[:, 2].roll(1))).sum(-1)
        return nn.functional.softplus(neg - pos).mean()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [Trainer-{rank}] %(message)s")
    torch.manual_seed(0)
    model = DDP(Dot())
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
    last = None
    for epoch in itertools.count(1):
        for i, (name, edges) in enumerate(Buckets(sys.argv[1], rank, world)):
            if name != last:
                logging.info("epoch %d: loading %s", epoch, name)
                last = name
            loss = model(edges)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if i % 10 == 0:
                logging.info("epoch %d batch %d loss %.4f", epoch, i, loss.item())


if __name__ == "__main__":
    main()
