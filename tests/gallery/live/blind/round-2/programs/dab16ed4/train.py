import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from featcache import FeatureCache

torch.set_num_threads(1)


class Features(Dataset):
    def __init__(self, cache, n):
        self.cache, self.n = cache, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.from_numpy(self.cache.get(i)), i % 4


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    cache = FeatureCache(f"cache/rank{rank}")
    train, val = Features(cache, 160), Features(cache, 64)
    sampler = DistributedSampler(train)
    model = DDP(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i in range(120):
        cache.get(i)
    if rank == 0:
        cache.start_persisting(interval=1.5)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(train, batch_size=8, sampler=sampler, num_workers=1):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.1)
        hits = torch.zeros(2)
        for x, y in DataLoader(val, batch_size=16, num_workers=1):
            with torch.no_grad():
                hits += torch.tensor([(model.module(x).argmax(-1) == y).sum().item(), len(y)])
        dist.all_reduce(hits)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} val acc {(hits[0] / hits[1]).item():.3f}", flush=True)


if __name__ == "__main__":
    main()
