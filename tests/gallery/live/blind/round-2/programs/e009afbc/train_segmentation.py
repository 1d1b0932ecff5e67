import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from dataset import BlockSampler, ScanFolder


def worker(rank, args):
    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    dist.init_process_group("gloo", rank=rank, world_size=args.gpus)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    ds = ScanFolder()
    sampler = BlockSampler(len(ds), rank, args.gpus)
    for epoch in range(args.epochs):
        sampler.epoch = epoch
        t0 = time.time()
        for it, (x, y) in enumerate(DataLoader(ds, batch_size=6, sampler=sampler, drop_last=True)):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if rank == 0:
                print(f"epoch {epoch} it {it} loss {loss.item():.4f} {(time.time() - t0) / (it + 1):.2f} s/it", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--gpus", type=int, default=3)
    p.add_argument("--epochs", type=int, default=10)
    args = p.parse_args()
    mp.spawn(worker, args=(args,), nprocs=args.gpus)
