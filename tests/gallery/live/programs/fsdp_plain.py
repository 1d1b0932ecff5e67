"""A sharded model that trains well."""

import torch
from kit import Log, connect, options, start
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def main(args):
    rank, world = connect(args)
    log = Log(args, rank)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(4)))
    mesh = init_device_mesh("cpu", (world,))
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(args.steps):
        loss = model(torch.randn(16, 64)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        log.step(step, loss.detach())


if __name__ == "__main__":
    start(main, options())
