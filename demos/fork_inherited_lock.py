"""Loader workers are forked while a background thread refreshes a cache."""

import threading
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Cache:
    def __init__(self):
        self.lock = threading.Lock()
        self.entries = {}

    def refresh(self):
        while True:
            with self.lock:
                self.entries.clear()
                time.sleep(1.5)
            time.sleep(0.05)

    def get(self, index):
        with self.lock:
            return self.entries.setdefault(index, torch.randn(64))


class Samples(Dataset):
    def __init__(self, cache):
        self.cache = cache

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.cache.get(index)


def epoch(number, model, optimizer, loader, rank):
    for step, batch in enumerate(loader):
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"epoch {number} step {step} loss {loss.item():.4f}", flush=True)
        time.sleep(0.05)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    cache = Cache()
    samples = Samples(cache)
    epoch(0, model, optimizer, DataLoader(samples, batch_size=8), rank)
    if rank == 1:
        threading.Thread(target=cache.refresh, daemon=True).start()
        time.sleep(0.2)
    workers = {"num_workers": 1, "multiprocessing_context": "fork"}
    epoch(1, model, optimizer, DataLoader(samples, batch_size=8, **workers), rank)


if __name__ == "__main__":
    main()
