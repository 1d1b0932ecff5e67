import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from data import UtteranceDataset
from shard_cache import ArchiveCache, CacheRefresher, FeatureStore


class Encoder(nn.Module):
    def __init__(self, bins=40, hidden=96, classes=32):
        super().__init__()
        self.sub = nn.Conv1d(bins, hidden, 5, stride=4)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        h = F.relu(self.sub(x.transpose(1, 2))).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.out(h.mean(1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--num-workers", type=int, default=2)
    p.add_argument("--refresh-from-epoch", type=int, default=2)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(5)

    store = FeatureStore(num_archives=24, utts_per_archive=64, frames=120, bins=40, seed=11)
    cache = ArchiveCache(store, capacity=12)
    dataset = UtteranceDataset(cache)
    sampler = DistributedSampler(dataset, shuffle=False)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler,
                        num_workers=args.num_workers, drop_last=True)
    refresher = CacheRefresher(cache, list(range(store.num_archives))) if rank == 1 % world else None

    model = DDP(Encoder())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        if refresher is not None and epoch == args.refresh_from_epoch:
            refresher.start()
        t0, total = time.time(), 0.0
        for feats, target in loader:
            loss = F.cross_entropy(model(feats), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        if rank == 0:
            print(f"epoch {epoch:3d} loss {total / len(loader):.3f} ({time.time() - t0:.1f}s)", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
