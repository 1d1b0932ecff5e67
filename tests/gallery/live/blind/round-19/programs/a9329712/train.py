import argparse
import os
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from archiver import archive
from sampledb import SampleWriter, create

SAMPLES = 6000


def worker(rank, args):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{args.port}", rank=rank,
                            world_size=args.nproc, timeout=timedelta(hours=2))
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 20)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    writer = SampleWriter(args.db, rank)
    g = torch.Generator().manual_seed(rank)
    table = torch.randn(SAMPLES, 256, generator=torch.Generator().manual_seed(9))
    target = torch.randint(0, 20, (SAMPLES,), generator=torch.Generator().manual_seed(9))
    mine = torch.arange(rank, SAMPLES, args.nproc)

    t0 = time.time()
    for step in range(args.steps):
        idx = mine[torch.randint(0, len(mine), (64,), generator=g)]
        logits = model(table[idx])
        losses = F.cross_entropy(logits, target[idx], reduction="none")
        opt.zero_grad()
        losses.mean().backward()
        opt.step()
        writer.write(step, idx, losses.detach(), logits.detach().softmax(1))
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {losses.mean().item():.4f} elapsed {time.time() - t0:.1f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--db", required=True)
    ap.add_argument("--archive", required=True)
    ap.add_argument("--nproc", type=int, default=3)
    ap.add_argument("--steps", type=int, default=1000000)
    args = ap.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        args.port = s.getsockname()[1]
    create(args.db, SAMPLES)
    mp.get_context("spawn").Process(target=archive, args=(args.db, args.archive), name="archiver", daemon=True).start()
    mp.spawn(worker, args=(args,), nprocs=args.nproc, join=True)
