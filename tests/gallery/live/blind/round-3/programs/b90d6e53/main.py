import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset

from feature_stats import FeatureStats
from shardio import Shard, write_shard

DIM = 64


class FeatureDataset(Dataset):
    def __init__(self, shards):
        self.shards = shards

    def __len__(self):
        return len(self.shards)

    def __getitem__(self, i):
        return torch.from_numpy(self.shards[i].read().copy())


def worker(rank, args):
    torch.set_num_threads(1)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    dist.init_process_group("gloo", rank=rank, world_size=args.nprocs)
    root = f"features/rank{rank}"
    os.makedirs(root, exist_ok=True)
    shards = []
    for i in range(12):
        path = f"{root}/feat{i:03d}.bin"
        write_shard(path, 256, DIM, seed=rank * 100 + i)
        shards.append(Shard(path, DIM))
    dist.barrier()

    model = DDP(nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 10)))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(args.epochs):
        loader = DataLoader(FeatureDataset(shards), batch_size=1, num_workers=2, shuffle=True,
                            multiprocessing_context="fork")
        t0 = time.time()
        for (x,) in loader:
            loss = model(x).logsumexp(-1).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.05)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} time {time.time() - t0:.1f}s", flush=True)
        if epoch == 2 and rank == 0:
            FeatureStats(shards).start()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--nprocs", type=int, default=2)
    p.add_argument("--epochs", type=int, default=10)
    args = p.parse_args()
    mp.spawn(worker, args=(args,), nprocs=args.nprocs)
