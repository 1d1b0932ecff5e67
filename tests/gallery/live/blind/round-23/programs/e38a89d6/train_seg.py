import argparse
import os
import socket
import sys
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from prefetch import BackgroundLoader
from volumes import VolumeFolder, iterate


class SmallUNet(nn.Module):
    def __init__(self, ch=4):
        super().__init__()
        self.enc = nn.Conv3d(1, ch, 3, padding=1)
        self.down = nn.Conv3d(ch, ch * 2, 3, stride=4, padding=1)
        self.up = nn.ConvTranspose3d(ch * 2, ch, 4, stride=4)
        self.out = nn.Conv3d(ch * 2, 1, 1)

    def forward(self, x):
        skip = torch.relu(self.enc(x))
        y = self.up(torch.relu(self.down(skip)))
        if y.shape[2:] != skip.shape[2:]:
            raise ValueError(f"decoder {tuple(y.shape[2:])} vs skip {tuple(skip.shape[2:])}")
        return self.out(torch.cat([y, skip], dim=1))


def dice_loss(logits, target):
    prob = logits.sigmoid()
    inter = (prob * target).sum()
    return 1 - (2 * inter + 1) / (prob.sum() + target.sum() + 1)


def worker(rank, args, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group(
        "gloo", rank=rank, world_size=args.world_size, timeout=timedelta(minutes=45)
    )
    torch.manual_seed(3)
    model = DDP(SmallUNet())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    folder = VolumeFolder(400, args.size, seed=rank)
    loader = BackgroundLoader(iterate(folder, rank, seed=rank))
    try:
        fit(model, opt, loader, rank)
    except Exception:
        print(f"[rank {rank}] training failed", file=sys.stderr, flush=True)
        traceback.print_exc()
        raise
    dist.destroy_process_group()


def fit(model, opt, loader, rank):
    start = time.time()
    for step, batch in enumerate(loader):
        logits = model(batch["volume"])
        loss = dice_loss(logits, batch["mask"])
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.12)
        if rank == 0 and step % 20 == 0:
            print(f"step {step:5d} dice {loss.item():.4f} {time.time() - start:7.1f}s", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--world-size", type=int, default=3)
    p.add_argument("--size", type=int, default=64)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(args, port), nprocs=args.world_size)


if __name__ == "__main__":
    main()
