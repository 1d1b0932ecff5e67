"""Each rank reads its own shard of a stream."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

ROWS_OF_SHARD = [104, 64]


class Shard(IterableDataset):
    def __init__(self, number):
        self.rows = ROWS_OF_SHARD[number]

    def __iter__(self):
        for _ in range(self.rows):
            yield torch.randn(64)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    for step, batch in enumerate(DataLoader(Shard(rank), batch_size=8)):
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        time.sleep(0.05)
    dist.barrier()
    if rank == 0:
        print("epoch 0 done", flush=True)


if __name__ == "__main__":
    main()
