"""Sharded model, sampling for a log line: lengths differ between ranks, and one stops generating before the others."""

import torch
import torch.distributed as dist
from kit import Log, connect, options, start
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def generate(model, longest):
    tokens = torch.zeros(1, 4, dtype=torch.long)
    for _ in range(longest):
        logits = model(tokens)
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
    return tokens


def main(args):
    rank, world = connect(args)
    log = Log(args, rank)
    model = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 50))
    mesh = init_device_mesh("cpu", (world,))
    fully_shard(model[1], mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(args.steps):
        loss = model(torch.randint(0, 50, (4, 8))).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        log.step(step, loss.detach())
        if step == args.when:
            with torch.no_grad():
                generate(model, 3 if rank == args.pick else 9)
            dist.barrier()


if __name__ == "__main__":
    start(main, options())
