import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from wds import ShardDataset, pipe_urls

torch.set_num_threads(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shards", type=int, default=8)
    p.add_argument("--epochs", type=int, default=1)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    ds = ShardDataset(pipe_urls(os.environ["STORE_URL"], args.shards), rank, world, seed=3)
    model = DDP(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(args.epochs):
        ds.epoch = epoch
        loader = DataLoader(ds, batch_size=8, num_workers=2, drop_last=True)
        for it, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.15)
            if it % 5 == 0 and rank == 0:
                print(f"epoch {epoch} iter {it} loss {loss.item():.4f}", flush=True)
        dist.barrier()


if __name__ == "__main__":
    main()
