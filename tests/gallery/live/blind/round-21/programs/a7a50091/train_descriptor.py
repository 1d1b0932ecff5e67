import argparse
import datetime
import os
import socket
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DistributedSampler

from geometry_pool import GeometryPool
from pair_store import KPTS, PairStore, write_store


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def train(rank, world_size, port, folder, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world_size,
                            timeout=datetime.timedelta(hours=1))
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Flatten(), nn.Linear(KPTS * 4, 64), nn.GELU(), nn.Linear(64, 4)))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    total = len(PairStore(folder))
    sampler = DistributedSampler(range(total), world_size, rank, shuffle=False, drop_last=True)
    geometry = GeometryPool(folder)
    step = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        ids = list(sampler)
        for lo in range(0, len(ids) - args.batch_size + 1, args.batch_size):
            kpts, rots = geometry.annotate(ids[lo:lo + args.batch_size])
            pred = model(torch.from_numpy(kpts.copy()))
            loss = nn.functional.mse_loss(pred, torch.from_numpy(rots).flatten(1))
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(args.step_cost)
            step += 1
            if rank == 0 and step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
    geometry.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world-size", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--step-cost", type=float, default=0.25)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="pairs_")
    write_store(folder, pairs=12000, seed=5)
    mp.spawn(train, args=(args.world_size, free_port(), folder, args), nprocs=args.world_size)
