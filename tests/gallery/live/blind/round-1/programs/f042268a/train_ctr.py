import argparse
import random
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from prefetch import Prefetcher

FIELDS = ["site", "app", "device", "hour", "banner", "geo"]
BUCKETS = 2000


def log_lines(part, n):
    """click,site,app,device,hour,banner,geo"""
    rng = random.Random(part)
    for i in range(n):
        vals = [str(rng.randrange(BUCKETS)) for _ in FIELDS]
        if part == 5 and i == 2750:
            vals[3] = "24h"
        yield ",".join([str(int(rng.random() < 0.2))] + vals)


def parse(line):
    click, *vals = line.split(",")
    return float(click), [hash_field(i, v) for i, v in enumerate(vals)]


def hash_field(i, v):
    return i * BUCKETS + int(v) % BUCKETS


def batches(parts, lines, bs):
    ys, xs = [], []
    for part in parts:
        for line in log_lines(part, lines):
            y, x = parse(line)
            ys.append(y)
            xs.append(x)
            if len(ys) == bs:
                yield torch.tensor(ys), torch.tensor(xs)
                ys, xs = [], []


class DeepFM(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.emb = nn.Embedding(len(FIELDS) * BUCKETS, dim)
        self.wide = nn.Embedding(len(FIELDS) * BUCKETS, 1)
        self.deep = nn.Sequential(nn.Linear(len(FIELDS) * dim, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(),
                                  nn.Linear(64, 1))

    def forward(self, x):
        e = self.emb(x)
        fm = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(-1)
        return self.wide(x).sum((1, 2)) + fm + self.deep(e.flatten(1)).squeeze(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--parts", type=int, default=240)
    ap.add_argument("--lines", type=int, default=4000)
    ap.add_argument("--bs", type=int, default=64)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(DeepFM())
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    bce = nn.BCEWithLogitsLoss()
    mine = list(range(args.parts))[rank::world]
    feed = Prefetcher(batches(mine, args.lines, args.bs))

    t0, ema = time.time(), None
    for step, (y, x) in enumerate(feed):
        loss = bce(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        ema = loss.item() if ema is None else 0.98 * ema + 0.02 * loss.item()
        if rank == 0 and step % 50 == 0:
            print(f"step {step} logloss {ema:.4f} {step * args.bs * world / (time.time() - t0 + 1e-9):.0f} rows/s",
                  flush=True)
    if rank == 0:
        print(f"input {feed.status}", flush=True)
        torch.save(model.module.state_dict(), "deepfm.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
