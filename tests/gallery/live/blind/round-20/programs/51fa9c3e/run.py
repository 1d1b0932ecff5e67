import argparse
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from metrics import RunningStats
from shards import EventShards


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def train(rank, world, port, epochs):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(3)
    net = DDP(nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 2)))
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    loader = DataLoader(EventShards(rank, world), batch_size=16)
    stats = RunningStats()
    for epoch in range(epochs):
        stats.reset()
        with net.join():
            for i, (x, y) in enumerate(loader):
                opt.zero_grad()
                logits = net(x)
                loss = F.cross_entropy(logits, y)
                loss.backward()
                opt.step()
                stats.update(logits, y, loss)
                if rank == 0 and i % 20 == 0:
                    print(f"epoch {epoch} batch {i} {stats.line()}", flush=True)
        if rank == 0:
            print(f"epoch {epoch} done: {stats.line()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--workers", type=int, default=3)
    p.add_argument("--epochs", type=int, default=50)
    a = p.parse_args()
    mp.spawn(train, args=(a.workers, free_port(), a.epochs), nprocs=a.workers)
