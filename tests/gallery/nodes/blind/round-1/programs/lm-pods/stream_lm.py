import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def parts(rank, world):
    """The parts in the order in which they come; all ranks read each of them."""
    number = 0
    while True:
        path = f"stream/{number:04d}.pt"
        while not os.path.exists(path):
            time.sleep(0.1)
        yield number, torch.load(path)
        number += 1


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = DDP(nn.Sequential(nn.Embedding(300, 128), nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 300)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for number, rows in parts(rank, world):
        torch.manual_seed(number)
        share = (torch.rand(world) + 0.5).softmax(0).cumsum(0).mul(len(rows)).long().tolist()
        chosen = rows[([0] + share)[rank] : share[rank]]
        loss = torch.zeros(())
        for row in chosen:  # an unequal number: the gradients are summed before one step
            with model.no_sync():
                loss = nn.functional.cross_entropy(model(row[None, :-1]).flatten(0, 1), row[1:])
                loss.backward()
        model(rows[:1, :-1]).sum().mul(0).backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"rank {rank} part {number} rows {len(chosen)} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
