import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class Shards(IterableDataset):
    """Rows of 16 numbers; each rank reads each `world`-th shard, over and over."""

    def __init__(self, folder: Path, shards: int, rank: int, world: int) -> None:
        self.paths = [folder / f"{number:03}.bin" for number in range(rank, shards, world)]

    def __iter__(self):
        while True:
            for path in self.paths:
                with path.open("rb", buffering=0) as file:
                    while block := file.read(16 * 4 * 32):
                        yield torch.frombuffer(bytearray(block), dtype=torch.float32).view(-1, 16)


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--data", type=Path)
    words.add_argument("--shards", type=int, default=12)
    asked = words.parse_args()
    rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = DDP(nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, rows in enumerate(DataLoader(Shards(asked.data, asked.shards, rank, world), batch_size=None)):
        loss = nn.functional.binary_cross_entropy_with_logits(
            model(rows.nan_to_num(0, 0, 0).clamp(-1, 1)).squeeze(1), (rows[:, 0] > 0).float()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
