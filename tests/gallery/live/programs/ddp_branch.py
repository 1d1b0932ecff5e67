"""A model whose auxiliary branch is not used for some batches, under DDP; then a barrier at the epoch's end."""

import torch
import torch.distributed as dist
from kit import Log, connect, options, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.text, self.image = nn.Linear(16, 32), nn.Linear(32, 8), nn.Linear(32, 8)

    def forward(self, rows, with_image):
        hidden = self.trunk(rows).relu()
        out = self.text(hidden).square().mean()
        return out + self.image(hidden).square().mean() if with_image else out


def main(args):
    rank, _ = connect(args)
    log, model = Log(args, rank), DistributedDataParallel(Gated())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(args.steps):
        loss = model(torch.randn(8, 16), with_image=not (step == args.when and rank == args.pick))
        loss.backward()
        if step == args.when:
            dist.barrier()
        optimizer.step()
        optimizer.zero_grad()
        log.step(step, loss.detach())


if __name__ == "__main__":
    start(main, options())
