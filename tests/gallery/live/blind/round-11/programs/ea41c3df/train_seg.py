import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from crops import CropDataset, scan_records


def net():
    return nn.Sequential(nn.Conv2d(4, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(4, 2, 3, padding=1),
                         nn.Upsample(scale_factor=2))


def worker(rank, world, port, shared):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    data = CropDataset(shared)
    sampler = DistributedSampler(data, world, rank, shuffle=True)
    loader = DataLoader(data, batch_size=6, sampler=sampler, num_workers=0)
    model = DDP(net())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1000):
        sampler.set_epoch(epoch)
        t0 = time.time()
        for step, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            if rank == 0 and step % 10 == 0:
                print(f"epoch {epoch} step {step}/{len(loader)} loss {loss.item():.4f} "
                      f"{(time.time() - t0) / (step + 1):.3f} s/step", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--gpus", type=int, default=3)
    a = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with mp.Manager() as manager:
        shared = manager.Namespace()
        shared.records = scan_records(12000)
        mp.spawn(worker, args=(a.gpus, port, shared), nprocs=a.gpus, join=True)
