import argparse
import os
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from hub import fetch
from prefetch import Mirror, Prefetcher


def epoch_batches(path, rank, world, size, steps, epoch):
    arr = np.load(path)
    rng = np.random.default_rng(1000 * epoch + rank)
    rows = np.arange(rank, len(arr), world)
    for _ in range(steps):
        pick = rng.choice(rows, size)
        block = torch.from_numpy(arr[pick])
        yield block[:, :32], block[:, 32:]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=400)
    ap.add_argument("--steps", type=int, default=50)
    ap.add_argument("--batch", type=int, default=64)
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    local = int(os.environ["LOCAL_RANK"])
    node = int(os.environ["GROUP_RANK"])
    cache = os.path.join(os.environ["CACHE_DIR"], f"host{node}")
    os.makedirs(cache, exist_ok=True)

    mirror = Mirror(block_delay=0.0005 if node == 0 else 0.045)
    prefetcher = Prefetcher(cache, mirror) if local == 0 else None
    net = nn.Sequential(nn.Linear(32, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 1))
    ddp = DDP(net)
    opt = torch.optim.Adam(ddp.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        if prefetcher:
            prefetcher.finish()
        path = fetch(f"shard-{epoch + 1:05d}", cache, mirror)
        if prefetcher:
            prefetcher.start(f"shard-{epoch + 2:05d}")
        total = 0.0
        for x, y in epoch_batches(path, rank, world, args.batch, args.steps, epoch):
            loss = (ddp(x) - y).square().mean()
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.item()
        if local == 0:
            print(f"node {node} epoch {epoch} loss {total / args.steps:.4f} {time.time() - start:.2f}s", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
