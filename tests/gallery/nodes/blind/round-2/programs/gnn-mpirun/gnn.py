import os
import time

import torch
import torch.distributed as dist
from torch import nn

rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
world = int(os.environ["OMPI_COMM_WORLD_SIZE"])
GRAPHS, BATCH = 980, 8


def my_graphs() -> list[int]:
    """A block of the graphs for each rank; the last gets the rest."""
    block = -(-GRAPHS // world)
    return list(range(rank * block, min((rank + 1) * block, GRAPHS)))


def average_gradients(model: nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world


def main() -> None:
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 1))
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    optimizer = torch.optim.Adam(model.parameters())
    mine = my_graphs()
    for epoch in range(200):
        began = time.time()
        for start in range(0, len(mine), BATCH):
            graphs = mine[start : start + BATCH]
            adjacency = torch.rand(len(graphs), 16, 16).round()
            nodes = adjacency @ torch.randn(len(graphs), 16, 24)
            loss = model(nodes.mean(1)).sub(1).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            average_gradients(model)
            optimizer.step()
        dist.barrier()
        if rank == 0:
            print(f"epoch {epoch} took {time.time() - began:.1f} s", flush=True)


main()
