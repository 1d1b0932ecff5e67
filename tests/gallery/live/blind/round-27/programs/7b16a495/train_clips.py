import argparse
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset

from clip_store import ClipStore


def build_catalog(n_clips):
    catalog = []
    for i in range(n_clips):
        kind = "lecture" if 290 <= i < 340 else "short"
        catalog.append({
            "name": f"{kind}_{i:05d}",
            "kind": kind,
            "n_frames": 2400 if kind == "lecture" else 300,
            "seed": i * 31,
            "label": i % 5,
        })
    return catalog


class ClipDataset(IterableDataset):
    def __init__(self, catalog, rank, world, store):
        per = len(catalog) // world
        self.records = catalog[rank * per:(rank + 1) * per]
        self.store = store
        self.generator = torch.Generator().manual_seed(rank)

    def __iter__(self):
        for record in self.records:
            clip = self.store.open(record)
            if record["kind"] == "lecture":
                part = clip.split(4)[int(torch.randint(4, (1,), generator=self.generator))]
                x = part.decode(self.generator)
            else:
                x = torch.randn(32, 16, generator=self.generator)
                x += clip.frames[-1]["pts"] / 100.0
            yield x, record["label"]


class ClipEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.temporal = nn.GRU(16, 32, batch_first=True)
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        out, _ = self.temporal(x)
        return self.head(out.mean(dim=1))


def train_one_epoch(model, loader, optimizer, epoch, rank, store):
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y)
        time.sleep(0.12)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if rank == 0:
                print(f"epoch {epoch} step {step} loss {mean.item() / dist.get_world_size():.4f} "
                      f"open clips {store.open_count()}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--clips", type=int, default=600)
    args = parser.parse_args()

    dist.init_process_group("gloo", timeout=timedelta(minutes=40))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(17)
    store = ClipStore()
    dataset = ClipDataset(build_catalog(args.clips), rank, world, store)
    loader = DataLoader(dataset, batch_size=2, num_workers=0)
    model = DDP(ClipEncoder())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        train_one_epoch(model, loader, optimizer, epoch, rank, store)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
