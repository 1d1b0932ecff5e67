import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from catalog import Catalog
from monitor import ResourceMonitor

torch.set_num_threads(1)


def train(args, rank, world):
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 5)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = Catalog(rank, world)
    for epoch in range(args.epochs):
        for step, (x, y) in enumerate(data.batches(16)):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.1)
            if step % 10 == 0 and rank == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    args = p.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    monitor = ResourceMonitor(f"resources_{rank}.jsonl")
    monitor.start()
    train(args, rank, world)
    monitor.stop()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
