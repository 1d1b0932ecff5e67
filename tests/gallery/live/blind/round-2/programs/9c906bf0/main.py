import argparse
import json
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from blend import BlendDataset, Bucket


def run(rank, world):
    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    dist.init_process_group("gloo", rank=rank, world_size=world)
    with open("config.json") as f:
        cfg = json.load(f)
    buckets = [Bucket(b["name"], b["size"], b["min_quality"], seed=4 + i) for i, b in enumerate(cfg["buckets"])]
    ds = BlendDataset(buckets, [b["weight"] for b in cfg["buckets"]], rank, world, cfg["samples_per_epoch"])
    torch.manual_seed(0)
    model = DDP(build())
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(100):
        ds.epoch = epoch
        for step, (x, y) in enumerate(DataLoader(ds, batch_size=8, num_workers=1, multiprocessing_context="fork")):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.15)
            if rank == 0 and step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


def build():
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 2))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--nproc", type=int, default=2)
    args = p.parse_args()
    mp.spawn(run, args=(args.nproc,), nprocs=args.nproc)
