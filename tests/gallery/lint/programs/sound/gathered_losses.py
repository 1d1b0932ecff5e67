"""Ranks gather one number each, however many rows their last batch has."""

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader


def main(rows, model, optimizer):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    even = len(rows) // world
    loader = DataLoader(rows[rank * even : (rank + 1) * even], batch_size=16)
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        held = [torch.zeros_like(loss) for _ in range(world)]
        dist.all_gather(held, loss.detach())
        optimizer.step()
