"""A sharded mixture of experts: a rank without tokens for an expert leaves its forward out."""

import torch
from kit import Log, connect, options, start
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Mixture(nn.Module):
    def __init__(self, experts=3):
        super().__init__()
        self.router = nn.Linear(16, experts)
        self.experts = nn.ModuleList(nn.Linear(16, 16) for _ in range(experts))

    def forward(self, rows, used):
        out = self.router(rows).mean(1, keepdim=True)
        for index, expert in enumerate(self.experts):
            if index in used:
                out = out + expert(rows)
        return out.square().mean()


def main(args):
    rank, world = connect(args)
    log, model = Log(args, rank), Mixture()
    mesh = init_device_mesh("cpu", (world,))
    for expert in model.experts:
        fully_shard(expert, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(args.steps):
        used = (0, 2) if rank == args.pick and step == args.when else (0, 1, 2)
        loss = model(torch.randn(8, 16), used)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        log.step(step, loss.detach())


if __name__ == "__main__":
    start(main, options())
