import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from validation import validate


def batches(rank, epoch, n=25):
    g = torch.Generator().manual_seed(epoch * 97 + rank)
    w = torch.randn(16, 5, generator=torch.Generator().manual_seed(1))
    for _ in range(n):
        x = torch.randn(8, 16, generator=g)
        yield x, (x @ w).argmax(-1)


def run_worker(rank, world, port, outdir, epochs=500):
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, world, is_master=rank == 0, timeout=timedelta(hours=2))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=timedelta(hours=2))
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 5)))
    optim = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        model.train()
        for i, (x, y) in enumerate(batches(rank, epoch)):
            loss = F.cross_entropy(model(x), y)
            optim.zero_grad()
            loss.backward()
            optim.step()
            time.sleep(0.1)
            if rank == 0 and i % 5 == 0:
                print(f"epoch {epoch} iter {i} loss {loss.item():.4f}", flush=True)
        model.eval()
        score = validate(model.module, store, rank, world, epoch, outdir)
        if rank == 0:
            print(f"epoch {epoch} accuracy {score:.3f}", flush=True)
    dist.destroy_process_group()
