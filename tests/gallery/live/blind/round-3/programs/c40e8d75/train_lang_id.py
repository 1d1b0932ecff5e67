import argparse
import os
import time

import torch
import torch.nn as nn

from model_average import FileAverager
from shard_list import ShardFeeder, ensure_shards


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shards", default="shards")
    p.add_argument("--nnet_dir", default="exp")
    p.add_argument("--num_iters", type=int, default=15)
    a = p.parse_args()
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    ensure_shards(a.shards)
    time.sleep(1)
    feeder = ShardFeeder(a.shards, rank, world)
    print(f"task {rank + 1}/{world}: {len(feeder.todo)} shards", flush=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 12))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    average = FileAverager(a.nnet_dir, rank, world)
    for it in range(1, a.num_iters + 1):
        names = feeder.next()
        if not names:
            print(f"task {rank + 1}: all shards used, done", flush=True)
            return
        for name in names:
            x, y = torch.load(name)
            for i in range(0, len(x), 8):
                loss = nn.functional.cross_entropy(model(x[i:i + 8]), y[i:i + 8])
                opt.zero_grad()
                loss.backward()
                opt.step()
                time.sleep(0.04)
        average.step(it, model)
        print(f"iter {it} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
