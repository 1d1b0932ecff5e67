import argparse
import datetime
import os
import socket
import threading
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from publisher import SnapshotPublisher


class CTRModel(nn.Module):
    def __init__(self, buckets=2000, dim=16):
        super().__init__()
        self.emb = nn.EmbeddingBag(buckets, dim, mode="sum")
        self.mlp = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, ids):
        return self.mlp(self.emb(ids)).squeeze(-1)


def click_stream(rank, batch):
    g = torch.Generator().manual_seed(1000 + rank)
    while True:
        ids = torch.randint(0, 2000, (batch, 12), generator=g)
        yield ids, (ids[:, 0] % 5 == 0).float()


def worker(rank, world, port, steps):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=datetime.timedelta(minutes=40))
    torch.manual_seed(0)
    model = DDP(CTRModel())
    opt = torch.optim.Adagrad(model.parameters(), lr=0.02)
    model_lock = threading.Lock()
    publisher = None
    if rank == world - 1:
        publisher = SnapshotPublisher(model.module, model_lock)
        publisher.start()

    for step, (ids, y) in zip(range(steps), click_stream(rank, 64)):
        loss = F.binary_cross_entropy_with_logits(model(ids), y)
        opt.zero_grad()
        loss.backward()
        time.sleep(0.12)
        with model_lock:
            opt.step()
            if publisher is not None:
                publisher.updated(len(y))
        if rank == 0 and step % 10 == 0:
            print(f"step {step} logloss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--nprocs", type=int, default=3)
    ap.add_argument("--steps", type=int, default=50000)
    args = ap.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(args.nprocs, port, args.steps), nprocs=args.nprocs)


if __name__ == "__main__":
    main()
