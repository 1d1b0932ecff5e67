import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from audio import Clips


def build():
    return nn.Sequential(nn.Conv1d(1, 16, 9, 4), nn.GELU(), nn.Conv1d(16, 32, 9, 4), nn.GELU(),
                         nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 8))


def worker(rank, world, port, epochs):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(rank)
    ds = Clips()
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, batch_size=16, sampler=sampler, num_workers=1, multiprocessing_context="spawn")
    model = DDP(build())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        t0 = time.time()
        busy = 0.0
        for x, y in loader:
            t1 = time.time()
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            busy += time.time() - t1
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f} steps {busy:.2f}s of {time.time() - t0:.2f}s", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--epochs", type=int, default=100000)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, (args.ranks, port, args.epochs), nprocs=args.ranks)


if __name__ == "__main__":
    main()
